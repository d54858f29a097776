"""`sealane pipeline replay` and `backfill`: work over all that the lake has."""

from __future__ import annotations

from typing import Annotated

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import write_json
from sealane.cli.pipeline_options import Keys, LakePath, Master, Since, Until, open_spark, pipeline_settings
from sealane.cli.progress import progress_bar


def replay(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="As the lake has it: `name` or `domain/name`.")],
    to: Annotated[str, typer.Option("--to", metavar="TOPIC", help="Where the messages go.")],
    since: Since = None,
    until: Until = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Only messages for which this holds, in Spark SQL."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, metavar="PER-SECOND", help="Messages a second, at most.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="The same order under another name is another job, and is done again.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell how many it would be.")] = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    keys: Keys = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Publish messages of the lake once more, in their order. A job that was stopped goes on when called again."""
    import sealane
    from sealane.message import split_topic
    from sealane.pipeline.bulk.replaying import Order
    from sealane.pipeline.bulk.replaying import replay as do_replay
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.secrets.keeping import keys_path

    settings = pipeline_settings(lake, data, url, master=master, keys=keys)
    order = Order("/".join(split_topic(topic)), to, since=since, until=until, where=where, rate=rate, name=name)
    with (
        held(settings.lake),  # Files that compaction moves meanwhile would be read twice.
        sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane,
        progress_bar("replaying", "messages") as progress,
    ):
        spark = open_spark(settings)
        done = do_replay(spark, Lake(settings.lake), lane, order, keys_path(settings), dry_run=dry_run, told=progress)
    if as_json:
        write_json({"messages": done.messages, "published": done.published, "before": done.before, "dry_run": dry_run})
    elif dry_run:
        typer.echo(f"{done.messages:,} messages would be published to {to}")
    else:
        before = f", {done.before:,} had been before" if done.before else ""
        typer.echo(f"{done.published:,} messages were published to {to}{before}")


def backfill(
    as_json: AsJson = False, lake: LakePath = None, master: Master = "local[*]", data: Data = DEFAULT_DATA
) -> None:
    """Compute the deliveries again from the messages and history that the lake has, and put them in their place."""
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.steps.history import backfill_deliveries

    settings = pipeline_settings(lake, data, None, master=master)
    with held(settings.lake):
        rows = backfill_deliveries(open_spark(settings), Lake(settings.lake))
    if as_json:
        write_json({"table": "facts/deliveries", "rows": rows})
    else:
        typer.echo(f"facts/deliveries has {rows:,} rows now")
