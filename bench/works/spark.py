"""Topics as DataFrames: how fast they are read and written beside Parquet, and how soon a streaming query has a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.clients.order import Result
from bench.figures import percentile
from bench.spark import sessions
from bench.work import Amounts, Part, Reading, Work

ROW_RATE = "rows/s"
TIMES = "×"
FRESHNESS_PERCENTS = (50, 95, 99)

PLAIN_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""On a local disk, Spark's default way to write a checkpoint starts 20 processes a micro-batch (`readlink`, `chmod`):
Hadoop has no native library in Spark's package from PyPI. This one starts 4."""


def _source(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    ratios = {
        "plain-ratio": ("plain", "parquet"),
        "tls-ratio": ("tls", "parquet"),
        "plain-to-parquet-ratio": ("plain-to-parquet", "parquet-to-parquet"),
        "tuples-ratio": ("plain", "tuples"),
    }
    return _of_rounds(measuring.reading(path, **amounts), ratios)


def _sink(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    return _of_rounds(measuring.writing(path, **amounts), {"plain-ratio": ("plain", "into-parquet")})


def _of_rounds(found: Result, ratios: Mapping[str, tuple[str, str]]) -> Reading:
    """Each job's rates, and how many times another's rate one is, in the same round."""
    rates: dict[str, list[float]] = found["rates"]
    beside = {
        name: [mine / others for mine, others in zip(rates[job], rates[other], strict=True)]
        for name, (job, other) in ratios.items()
    }
    return Reading({}, rounds={**rates, **beside}, foreign=found["foreign"])


def _freshness(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    found = measuring.freshness(path, **amounts)
    ordered = sorted(found["took_ms"]["plain"])
    values = {f"p{percent}": percentile(ordered, percent) for percent in FRESHNESS_PERCENTS}
    return Reading(values, {"p50": ordered}, foreign=found["foreign"])


def _freshness_parts(what: str, reaches: dict[int, float]) -> tuple[Part, ...]:
    return tuple(
        Part(f"p{percent}", f"{what}, p{percent}", "ms", reaches.get(percent), True) for percent in FRESHNESS_PERCENTS
    )


SPARK = (
    Work(
        "spark-source",
        "spark",
        (
            Part("plain", "Spark reads a topic, {count:,} × {size} B, into nothing", ROW_RATE, 700_000),
            Part("tls", "the same over mutual TLS", ROW_RATE),
            Part("parquet", "Spark reads its own Parquet files of the same rows, into nothing", ROW_RATE),
            Part("plain-ratio", "a topic beside Parquet files, into nothing", TIMES, 0.45),
            Part("tls-ratio", "the same over mutual TLS, beside Parquet files, into nothing", TIMES),
            Part("plain-to-parquet", "a topic into Parquet files", ROW_RATE),
            Part("parquet-to-parquet", "Parquet files of the same rows into Parquet files", ROW_RATE),
            Part("plain-to-parquet-ratio", "a topic beside Parquet files, into Parquet files", TIMES, 0.85),
            Part("tuples", "a Python source that yields tuples, {less_count:,} of the same rows", ROW_RATE),
            Part("tuples-ratio", "a topic beside a Python source that yields tuples, into nothing", TIMES, 5.0),
        ),
        _source,
        {
            "count": 2_000_000,
            "batch": 5_000,
            "size": 100,
            "rounds": 5,
            "warm_rounds": 1,
            "less_count": 200_000,
        },
        {"count": 300_000, "rounds": 1, "less_count": 50_000},
        rounds_max=1,
        seconds=130,
        quick_seconds=30,
        in_quick=False,
        missing=sessions.missing,
    ),
    Work(
        "spark-sink",
        "spark",
        (
            Part("plain", "Spark writes {count:,} rows of {size} B from its memory into a topic", ROW_RATE, 250_000),
            Part("into-parquet", "the same into Parquet files", ROW_RATE),
            Part("payloads", "the same into nothing: what making the rows takes", ROW_RATE),
            Part("plain-ratio", "into a topic beside into Parquet files", TIMES),
        ),
        _sink,
        {"count": 1_000_000, "size": 100, "rounds": 5, "warm_rounds": 2},
        {"count": 200_000, "rounds": 1, "warm_rounds": 1},
        rounds_max=1,
        seconds=60,
        quick_seconds=20,
        in_quick=False,
        missing=sessions.missing,
    ),
    Work(
        "spark-freshness",
        "spark",
        _freshness_parts("{per_second} single publishes a second, publish to foreachBatch", {50: 500, 95: 1_000}),
        _freshness,
        {"count": 300, "per_second": 20, "warm_batches": 60},
        {"count": 60, "warm_batches": 20},
        rounds_max=2,
        seconds=40,
        quick_seconds=25,
        in_quick=False,
        missing=sessions.missing,
    ),
    Work(
        "spark-freshness-files",
        "spark",
        _freshness_parts("the same, checkpoint files by Hadoop's FileSystem", {}),
        _freshness,
        {"count": 300, "per_second": 20, "warm_batches": 60, "settings": PLAIN_CHECKPOINTS},
        {"count": 60, "warm_batches": 20},
        rounds_max=2,
        seconds=35,
        quick_seconds=25,
        in_quick=False,
        missing=sessions.missing,
    ),
)
