"""`sealane pipeline replay` and `backfill`: work over all that the lake has."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Annotated

import typer

from sealane.cli.moments import MOMENT, parse_moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import write_json
from sealane.cli.pipeline_audit import NoAudit, node_lane
from sealane.cli.pipeline_options import (
    DryRun,
    Keys,
    LakePath,
    Master,
    Rate,
    existing_lake,
    open_spark,
    pipeline_settings,
)
from sealane.cli.progress import progress_bar


def _parse_fixed(text: str) -> datetime:
    """A time that is the same whenever the command is given again, by which a job goes on."""
    moment = parse_moment(text)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} ago is another time whenever the job goes on; write {moment.isoformat(timespec='seconds')}"
        raise typer.BadParameter(problem) from None
    return moment


def replay(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="As the lake has it: `name` or `domain/name`.")],
    to: Annotated[str, typer.Option("--to", metavar="TOPIC", help="Where the messages go.")],
    since: Annotated[
        datetime | None,
        typer.Option("--since", metavar=MOMENT, parser=_parse_fixed, help="Created then or later: 2026-01-31T12:00."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", metavar=MOMENT, parser=_parse_fixed, help="Created before that.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only messages for which this holds, in Spark SQL."),
    ] = None,
    rate: Rate = None,
    name: Annotated[
        str, typer.Option("--name", help="The same order under another name is another job, and is done again.")
    ] = "",
    dry_run: DryRun = False,
    no_audit: NoAudit = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    keys: Keys = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Publish messages of the lake once more, in their order. A job that was stopped goes on when called again."""
    from sealane.message import split_topic
    from sealane.pipeline.bulk.auditing import Job, audited, without_numbers, without_values
    from sealane.pipeline.bulk.replaying import Order
    from sealane.pipeline.bulk.replaying import replay as do_replay
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.secrets.keeping import keys_path

    settings = pipeline_settings(lake, data, url, master=master, keys=keys)
    order = Order("/".join(split_topic(topic)), to, since=since, until=until, where=where, rate=rate, name=name)
    found = existing_lake(settings)
    period = {"since": since, "until": until, "where": without_values(where), "rate": rate}
    told = {"topic": order.topic, "to": to, **period, "name": without_numbers(name)}
    with (
        held(settings.lake),  # Files that compaction moves meanwhile would be read twice.
        node_lane(settings) as lane,
        progress_bar("replaying", "messages") as progress,
    ):
        spark = open_spark(settings)
        with audited(None if dry_run or no_audit else lane, Job("replay", found.root, told)) as said:
            done = do_replay(
                spark, found, lane, order, keys_path(settings), dry_run=dry_run, told=said.telling(progress)
            )
            said.ends_with(**dataclasses.asdict(done))
    if as_json:
        write_json({**dataclasses.asdict(done), "dry_run": dry_run})
        return
    before = f", {done.before:,} had been before" if done.before else ""
    if dry_run:
        typer.echo(f"{done.messages - done.before:,} messages would be published to {to}{before}")
    else:
        typer.echo(f"{done.published:,} messages were published to {to}{before}")


def backfill(
    typed: Annotated[
        bool, typer.Option("--typed", help="The tables of single topics, from the clean messages, instead.")
    ] = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    keys: Keys = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Compute the deliveries again from the messages and history that the lake has, and put them in their place."""
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.secrets.keeping import keys_of, keys_path
    from sealane.pipeline.steps.history import backfill_deliveries
    from sealane.pipeline.steps.typed import backfill_typed

    settings = pipeline_settings(lake, data, url, master=master, keys=keys)
    found = Lake(settings.lake)
    with held(settings.lake):
        spark = open_spark(settings)
        if typed:
            rows = backfill_typed(spark, found, settings, keys_of(found, keys_path(settings)))
        else:
            rows = backfill_deliveries(spark, found)
    table = "typed" if typed else "facts/deliveries"
    if as_json:
        write_json({"table": table, "rows": rows})
    else:
        typer.echo(f"{table} has {rows:,} rows now")
