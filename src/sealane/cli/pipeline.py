"""`sealane pipeline …`: what went through the broker as tables, by Spark."""

from __future__ import annotations

import dataclasses
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealane.cli.durations import size
from sealane.cli.group import SealaneGroup
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, DURATION, AsJson, Data, Url, seconds
from sealane.cli.output import examples, show_table, write_json
from sealane.cli.pipeline_export import export
from sealane.cli.pipeline_jobs import backfill, replay
from sealane.cli.pipeline_keys import forget, reseal
from sealane.cli.pipeline_options import Keys, LakePath, Master, Topics, lake_path, open_spark, pipeline_settings
from sealane.cli.pipeline_proof import reconcile
from sealane.cli.pipeline_redrive import redrive
from sealane.cli.pipeline_tables import report, sql

if TYPE_CHECKING:
    from sealane.pipeline.cycle import Cycle
    from sealane.pipeline.watching import TableStatus

pipeline_commands = typer.Typer(
    cls=SealaneGroup,
    no_args_is_help=True,
    help="The data pipeline: run it, look at it, ask its tables, prove deliveries.",
)

STOP_SECONDS = 300.0
"""How long `stop` waits: a step that is under way is finished first."""


@pipeline_commands.command(
    epilog=examples(
        "sealane pipeline run --once",
        "sealane pipeline run --topics 'shop/*' --bodies sealed --keep 'shop=30,*=365'",
        "sealane pipeline run --master spark://spark.example:7077 --lake /mnt/shared/lake",
    )
)
def run(
    once: Annotated[bool, typer.Option("--once", help="Take in all there is now, and end.")] = False,
    topics: Topics = "*/*",
    bodies: Annotated[
        str,
        typer.Option("--bodies", envvar="SEALANE_PIPELINE__BODIES", help="Payloads: left-out, sealed or plain."),
    ] = "left-out",
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="DOMAIN=DAYS,…",
            envvar="SEALANE_PIPELINE__KEEP",
            show_default=False,
            help="How many days are kept, by domain; * for those that are not named. Default: all.",
        ),
    ] = "",
    delta: Annotated[
        Path | None,
        typer.Option(
            "--delta",
            metavar="DIRECTORY",
            envvar="SEALANE_PIPELINE__DELTA",
            show_default=False,
            help="Keep the tables as Delta tables too, there. Default: no.",
        ),
    ] = None,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="How often what is new is taken in.")
    ] = 5.0,
    lake: LakePath = None,
    keys: Keys = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Take in what goes through the broker, until Ctrl-C; with --once, what there is now."""
    from sealane.pipeline.cycle import run as run_cycles
    from sealane.pipeline.cycle import run_cycle
    from sealane.pipeline.lake.delta import check_delta
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.retention import parse_kept_days
    from sealane.pipeline.telling import tell

    if bodies not in ("left-out", "sealed", "plain"):
        raise typer.BadParameter(f"{bodies!r} is not left-out, sealed or plain", param_hint="--bodies")
    chosen = {"topics": topics, "bodies": bodies, "trigger_seconds": every, "master": master, "keys": keys}
    settings = pipeline_settings(lake, data, url, **chosen, kept_days=parse_kept_days(keep), delta=delta)
    if delta is not None:
        check_delta()
    with held(settings.lake):
        spark = open_spark(settings)
        if once:
            done = run_cycle(spark, settings)
            tell(spark, settings, done.began)
            _tell(done)
            return
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        typer.echo(f"tables are in {settings.lake}; Ctrl-C ends after the step that is under way", err=True)
        run_cycles(spark, settings, stop, _tell)


@pipeline_commands.command(epilog=examples("sealane pipeline status", "sealane pipeline status --json"))
def status(lake: LakePath = None, as_json: AsJson = False, data: Data = DEFAULT_DATA) -> None:
    """Show the tables: how much is in each, when something came in last, and which process runs the pipeline."""
    from sealane.pipeline.lake.holding import holder
    from sealane.pipeline.watching import look

    where = lake_path(lake, data)
    found, pid = look(where), holder(where)
    if as_json:
        write_json({"running": pid, "tables": [dataclasses.asdict(each) for each in found]})
        return
    show_table(
        ["table", ">rows", ">files", ">size", "last"],
        [(each.table, f"{each.rows:,}", each.files, size(each.size_bytes), _changed(each)) for each in found],
        empty="no tables yet: `sealane pipeline run --once` makes them",
    )
    typer.echo("it does not run" if pid is None else f"it runs as process {pid}", err=True)


@pipeline_commands.command(epilog=examples("sealane pipeline stop", "sealane pipeline stop --wait 10m"))
def stop(
    wait: Annotated[
        float, typer.Option("--wait", metavar=DURATION, parser=seconds, help="How long to wait for its end.")
    ] = STOP_SECONDS,
    lake: LakePath = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """End the pipeline that runs on this machine, after the step that is under way."""
    from sealane.pipeline.lake.holding import stop_holder

    pid = stop_holder(lake_path(lake, data), wait)
    typer.echo("it does not run" if pid is None else f"process {pid} has ended it", err=True)


pipeline_commands.command(
    epilog=examples(
        'sealane pipeline sql "SELECT outcome, count(*) FROM deliveries GROUP BY outcome"',
        'sealane pipeline sql "SELECT * FROM messages ORDER BY created DESC LIMIT 10" --json',
    )
)(sql)
pipeline_commands.command(
    epilog=examples("sealane pipeline report", "sealane pipeline report --since 7d --out last-week.html")
)(report)
pipeline_commands.command(
    epilog=examples(
        "sealane pipeline reconcile",
        "sealane pipeline reconcile --topics shop/orders --json",
        "sealane pipeline reconcile --since 2026-01-31T12:00 --until 2026-01-31T13:00",
    )
)(reconcile)
pipeline_commands.command(
    epilog=examples(
        "sealane pipeline replay orders --to orders-again --dry-run",
        "sealane pipeline replay shop/orders --to shop/orders --since 2026-01-31T12:00 --until 2026-01-31T13:00",
        "sealane pipeline replay orders --to audit --where \"headers['region'] = 'eu'\" --rate 1000",
    )
)(replay)
pipeline_commands.command(
    epilog=examples(
        "sealane pipeline redrive orders billing --dry-run",
        "sealane pipeline redrive orders billing --reason timeout --since 2h --rate 100 --yes",
        'sealane pipeline redrive --domain shop --where "attempts > 3" --yes',
    )
)(redrive)
pipeline_commands.command(epilog=examples("sealane pipeline backfill", "sealane pipeline backfill --typed"))(backfill)
pipeline_commands.command(epilog=examples("sealane pipeline export --delta /mnt/delta"))(export)
pipeline_commands.command(epilog=examples("sealane pipeline reseal", "sealane pipeline reseal --dry-run"))(reseal)
pipeline_commands.command(
    epilog=examples(
        "sealane pipeline forget --number '+49 170 1234567' --dry-run",
        "sealane pipeline forget --key customer-42 --domain shop --yes",
    )
)(forget)


def _changed(status: TableStatus) -> str:
    return moment(None if status.changed is None else round(status.changed * 1_000_000))


def _tell(cycle: Cycle) -> None:
    typer.echo(f"{cycle.messages:,} messages and {cycle.events:,} events in {cycle.seconds:.1f} s", err=True)
