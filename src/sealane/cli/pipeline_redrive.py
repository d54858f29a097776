"""`sealane pipeline redrive`: dead letters that the lake tells of get another chance."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.group import EXIT_FAILED
from sealane.cli.moments import MOMENT, parse_moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url, Yes
from sealane.cli.output import confirm, show_table, write_json
from sealane.cli.pipeline_audit import NoAudit, node_lane
from sealane.cli.pipeline_options import (
    DryRun,
    LakePath,
    Master,
    Rate,
    existing_lake,
    open_spark,
    pipeline_settings,
)
from sealane.cli.progress import progress_bar

if TYPE_CHECKING:
    from sealane.pipeline.bulk.redriving import Group, Redriven


def redrive(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", show_default=False, help="`name` or `domain/name`. Default: all topics."),
    ] = None,
    subscription: Annotated[
        str | None,
        typer.Argument(metavar="[SUBSCRIPTION]", show_default=False, help="The subscription. Default: all of them."),
    ] = None,
    domain: Annotated[str | None, typer.Option("--domain", help="All topics of this domain.")] = None,
    cause: Annotated[
        str | None, typer.Option("--cause", help="Only those with this cause, as `dead_letters` has it.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only those with this reason, as `dead_letters` has it.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            "--since", metavar=MOMENT, parser=parse_moment, help="Died then or later; a time, or how long ago"
        ),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", metavar=MOMENT, parser=parse_moment, help="Died before that.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only deliveries for which this holds, in Spark SQL."),
    ] = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    no_audit: NoAudit = False,
    yes: Yes = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Send dead letters that the lake tells of back to their subscriptions. What went back before is passed over.

    They are chosen as the view `dead_letters` groups them. A job that was stopped goes on when called again.
    """
    from sealane.message import split_topic
    from sealane.pipeline.bulk.asked import check_rate
    from sealane.pipeline.bulk.auditing import Job, audited, without_numbers, without_values
    from sealane.pipeline.bulk.redriving import Choice, choose
    from sealane.pipeline.bulk.redriving import redrive as do_redrive
    from sealane.pipeline.lake.holding import held

    if topic is not None and domain is not None:
        raise typer.BadParameter("a topic has its domain in its name: give --domain without one", param_hint="--domain")
    settings = pipeline_settings(lake, data, url, master=master)
    place = None if topic is None else "/".join(split_topic(topic))
    choice = Choice(domain, place, subscription, cause, reason, since, until, where)
    check_rate(rate)
    found = existing_lake(settings)
    with held(settings.lake):  # And not for longer: at a low rate the rest may take hours.
        readers = choose(open_spark(settings), found, choice)
    if readers and not dry_run:
        many = sum(len(reader.deliveries) for reader in readers)
        confirm(f"Send dead letters back to {len(readers):,} subscriptions, {many:,} at most?", yes=yes)
    hidden = {"where": without_values(where), "cause": without_numbers(cause), "reason": without_numbers(reason)}
    told = dataclasses.asdict(choice) | hidden | {"rate": rate}
    with (
        node_lane(settings) as lane,
        progress_bar("redriving", "messages") as progress,
        audited(None if dry_run or no_audit else lane, Job("redrive", found.root, told)) as said,
    ):
        done = do_redrive(lane, readers, rate=rate, dry_run=dry_run, told=said.telling(progress))
        said.ends_with(messages=done.messages, redriven=done.redriven, before=done.before)
    _tell(done, dry_run=dry_run, as_json=as_json)
    if any(group.problem for group in done.groups):
        raise typer.Exit(EXIT_FAILED)


def _tell(done: Redriven, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        counts = {"messages": done.messages, "redriven": done.redriven, "before": done.before}
        write_json({**counts, "dry_run": dry_run, "groups": [_shape(group) for group in done.groups]})
        return
    before = f", {done.before:,} had gone before" if done.before else ""
    verb = "would go" if dry_run else "went"
    typer.echo(f"{done.redriven:,} of {done.messages:,} messages {verb} back to their subscriptions{before}")
    if done.groups:
        columns = ["topic", "subscription", ">chosen", ">would go" if dry_run else ">went back", "reasons", "problem"]
        show_table(columns, map(_row, done.groups), empty="")


def _shape(group: Group) -> dict[str, Any]:
    return {
        "topic": group.topic,
        "subscription": group.subscription,
        "messages": group.messages,
        "redriven": group.redriven,
        "reasons": dict(group.reasons),
        "problem": group.problem,
    }


def _row(group: Group) -> tuple[object, ...]:
    reasons = ", ".join(f"{reason} ({many:,})" for reason, many in group.reasons.most_common())
    return group.topic, group.subscription, f"{group.messages:,}", f"{group.redriven:,}", reasons, group.problem
