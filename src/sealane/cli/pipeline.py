"""`sealane pipeline …`: what went through the broker as tables, by Spark."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.durations import size
from sealane.cli.group import SealaneGroup, fail
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_table, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.pipeline.cycle import Cycle
    from sealane.pipeline.settings import PipelineSettings
    from sealane.pipeline.watching import TableStatus

pipeline_commands = typer.Typer(
    cls=SealaneGroup,
    no_args_is_help=True,
    help="The data pipeline: run it, look at it, ask its tables, prove deliveries.",
)

EXIT_PROBLEMS = {"missing": 10, "duplicated": 11, "out of order": 12}
EXIT_SEVERAL = 13
"""How `reconcile` ends when messages break it: by which problem, or by several."""
BALANCE = ("published", "acked", "dead_lettered", "expired", "dropped", "passed_over", "in_flight", "missing")
PROBLEMS_SHOWN = 100
"""All of them are in the JSON."""

LakePath = Annotated[
    Path | None,
    typer.Option(
        "--lake",
        envvar="SEALANE_PIPELINE__LAKE",
        show_default=False,
        help="Where the tables are. Default: `lake` in the data directory.",
    ),
]
Topics = Annotated[
    str,
    typer.Option(
        "--topics", envvar="SEALANE_PIPELINE__TOPICS", help="What is taken in: names and patterns, with commas."
    ),
]
Master = Annotated[
    str,
    typer.Option("--master", envvar="SEALANE_PIPELINE__MASTER", help="Where Spark runs: spark://…, yarn, k8s://…."),
]


@pipeline_commands.command(
    epilog=examples(
        "sealane pipeline run --once",
        "sealane pipeline run --topics 'shop/*' --bodies plain",
        "sealane pipeline run --master spark://spark.example:7077 --lake /mnt/shared/lake",
    )
)
def run(
    once: Annotated[bool, typer.Option("--once", help="Take in all there is now, and end.")] = False,
    topics: Topics = "*/*",
    bodies: Annotated[
        str,
        typer.Option("--bodies", envvar="SEALANE_PIPELINE__BODIES", help="Payloads: left-out or plain."),
    ] = "left-out",
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="How often what is new is taken in.")
    ] = 5.0,
    lake: LakePath = None,
    master: Master = "local[*]",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Take in what goes through the broker, until Ctrl-C; with --once, what there is now."""
    if bodies not in ("left-out", "plain"):
        raise typer.BadParameter(f"{bodies!r} is neither left-out nor plain", param_hint="--bodies")
    settings = _settings(lake, data, url, topics=topics, bodies=bodies, trigger_seconds=every, master=master)
    from sealane.pipeline.cycle import run as run_cycles
    from sealane.pipeline.cycle import run_cycle

    spark = _spark(settings)
    if once:
        _tell(run_cycle(spark, settings))
        return
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    typer.echo(f"tables are in {settings.lake}; Ctrl-C ends after the step that is under way", err=True)
    run_cycles(spark, settings, stop, _tell)


@pipeline_commands.command(epilog=examples("sealane pipeline status", "sealane pipeline status --json"))
def status(lake: LakePath = None, as_json: AsJson = False, data: Data = DEFAULT_DATA) -> None:
    """Show the tables: how much is in each, and when something came in last."""
    from sealane.pipeline.watching import look

    found = look(_lake(lake, data))
    if as_json:
        write_json([dataclasses.asdict(each) for each in found])
        return
    show_table(
        ["table", ">rows", ">files", ">size", "last"],
        [(each.table, f"{each.rows:,}", each.files, size(each.size_bytes), _changed(each)) for each in found],
        empty="no tables yet: `sealane pipeline run --once` makes them",
    )


@pipeline_commands.command(
    epilog=examples(
        'sealane pipeline sql "SELECT outcome, count(*) FROM deliveries GROUP BY outcome"',
        'sealane pipeline sql "SELECT * FROM messages ORDER BY created DESC LIMIT 10" --json',
    )
)
def sql(
    text: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL; each table is known by its name.")],
    lake: LakePath = None,
    master: Master = "local[*]",
    as_json: AsJson = False,
    data: Data = DEFAULT_DATA,
) -> None:
    """Ask the tables: messages, history, deliveries, and what is computed from them, traffic and dead_letters."""
    from sealane.pipeline.asking import ask_tables

    settings = _settings(lake, data, None, master=master)
    columns, rows = ask_tables(_spark(settings), settings.lake, text)
    if as_json:
        write_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    show_table(columns, rows, empty="no rows")


@pipeline_commands.command(
    epilog=examples("sealane pipeline reconcile", "sealane pipeline reconcile --topics shop/orders --json")
)
def reconcile(
    topics: Topics = "*/*",
    lake: LakePath = None,
    master: Master = "local[*]",
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Take in what there is, and prove that every message was settled once and in order, or name those that break it.

    Ends with 0 if it holds, 10 for missing messages, 11 for duplicated ones, 12 for some out of order, 13 for several.
    """
    settings = _settings(lake, data, url, topics=topics, master=master)
    from sealane.pipeline.proving import prove

    proof = prove(_spark(settings), settings)
    if as_json:
        write_json({"holds": not proof.problems, "balance": proof.balance, "problems": proof.problems})
    else:
        columns = ["topic", ">partition", "subscription", *(f">{name.replace('_', ' ')}" for name in BALANCE)]
        show_table(columns, [_balance_row(row) for row in proof.balance], empty="no subscription has had anything yet")
        show_table(
            ["problem", "topic", ">partition", ">offset", "id", "subscription", "what"],
            [_problem_row(row) for row in proof.problems[:PROBLEMS_SHOWN]],
            empty="every message that was published is settled once and in order, or under way",
            title=f"{len(proof.problems):,} messages break it" if proof.problems else None,
        )
    kinds = {row["problem"] for row in proof.problems}
    if kinds:
        raise typer.Exit(EXIT_PROBLEMS[kinds.pop()] if len(kinds) == 1 else EXIT_SEVERAL)


def _changed(status: TableStatus) -> str:
    return moment(None if status.changed is None else round(status.changed * 1_000_000))


def _balance_row(row: dict[str, Any]) -> list[object]:
    counts = (f"{row[name]:,}" for name in BALANCE)
    return [f"{row['domain']}/{row['topic']}", row["partition"], row["subscription"], *counts]


def _problem_row(row: dict[str, Any]) -> list[object]:
    place = f"{row['domain']}/{row['topic']}"
    known = (row["id"] or "unknown", row["subscription"] or "any", row["detail"])
    return [row["problem"], place, row["partition"], row["offset"], *known]


def _lake(lake: Path | None, data: Path) -> Path:
    return lake if lake is not None else data / "lake"


def _settings(lake: Path | None, data: Path, url: str | None, **more: Any) -> PipelineSettings:
    from sealane.cli.choosing import chosen_profile
    from sealane.pipeline.settings import PipelineSettings

    return PipelineSettings(lake=_lake(lake, data), url=url, profile=chosen_profile(), data=data, **more)


def _spark(settings: PipelineSettings) -> SparkSession:
    try:
        from sealane.spark import session
    except ImportError:
        fail("Spark is not installed: pip install 'sealane[spark]', and Java 17 or newer")
    if not settings.master.startswith("local"):
        return session("sealane-pipeline", master=settings.master)
    # Spark's default, 200, is made for clusters: here most of a small step would be tasks that have nothing to do.
    return session("sealane-pipeline", master=settings.master, spark_sql_shuffle_partitions=2 * (os.cpu_count() or 1))


def _tell(cycle: Cycle) -> None:
    typer.echo(f"{cycle.messages:,} messages and {cycle.events:,} events in {cycle.seconds:.1f} s", err=True)
