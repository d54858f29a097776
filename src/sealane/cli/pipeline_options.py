"""What the commands of `sealane pipeline` share: where the lake is, the settings, and Spark."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.group import fail
from sealane.cli.moments import MOMENT, parse_moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.settings import PipelineSettings

LakePath = Annotated[
    Path | None,
    typer.Option(
        "--lake",
        envvar="SEALANE_PIPELINE__LAKE",
        show_default=False,
        help="Where the tables are. Default: `lake` in the data directory.",
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        envvar="SEALANE_PIPELINE__KEYS",
        show_default=False,
        help="The lake's keys. Default: `lake.keys` in the data directory.",
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

Since = Annotated[
    datetime | None,
    typer.Option("--since", metavar=MOMENT, parser=parse_moment, help="Created then or later; a time, or how long ago"),
]
Until = Annotated[
    datetime | None, typer.Option("--until", metavar=MOMENT, parser=parse_moment, help="Created before that.")
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell how much it would be.")]
Rate = Annotated[
    float | None, typer.Option("--rate", min=0.001, metavar="PER-SECOND", help="Messages a second, at most.")
]


def lake_path(lake: Path | None, data: Path) -> Path:
    return lake if lake is not None else data / "lake"


def pipeline_settings(lake: Path | None, data: Path, url: str | None, **more: Any) -> PipelineSettings:
    from sealane.cli.choosing import chosen_profile
    from sealane.pipeline.settings import PipelineSettings

    return PipelineSettings(lake=lake_path(lake, data), url=url, profile=chosen_profile(), data=data, **more)


def existing_lake(settings: PipelineSettings) -> Lake:
    """The lake that is meant, which has something in it: one that is not there is not made by looking at it."""
    from sealane.pipeline.bulk.asked import check_lake
    from sealane.pipeline.lake.tables import Lake

    lake = Lake(settings.lake)
    check_lake(lake)
    return lake


def open_spark(settings: PipelineSettings) -> SparkSession:
    try:
        from sealane.spark import session
    except ImportError:
        fail("Spark is not installed: pip install 'sealane[spark]', and Java 17 or newer")
    # Jobs of one kind do not wait until those of another are done.
    opened = partial(session, "sealane-pipeline", master=settings.master, spark_scheduler_mode="FAIR")
    if not settings.master.startswith("local"):
        return opened()
    # Spark's default, 200, is made for clusters: here most of a small step would be tasks that have nothing to do.
    return opened(spark_sql_shuffle_partitions=2 * (os.cpu_count() or 1))
