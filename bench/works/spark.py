"""Topics as DataFrames: how fast they are read and written beside Parquet, and how soon a streaming query has a row."""

from __future__ import annotations

from pathlib import Path

from bench.figures import percentile
from bench.spark import sessions
from bench.work import Amounts, Part, Reading, Work

ROW_RATE = "rows/s"
TIMES = "×"
FRESHNESS_PERCENTS = (50, 95, 99)


def _source(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    found = measuring.reading(path, **amounts)
    rates = found["rates"]
    return _of_rounds(
        found,
        {
            "plain-ratio": ("plain", "parquet"),
            "tls-ratio": ("tls", "parquet"),
            "plain-to-parquet-ratio": ("plain-to-parquet", "parquet-to-parquet"),
            "tuples-ratio": ("plain", "tuples"),
        },
        rates,
    )


def _sink(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    found = measuring.writing(path, **amounts)
    return _of_rounds(found, {"plain-ratio": ("plain", "into-parquet")}, found["rates"])


def _of_rounds(
    found: dict[str, list[float]], ratios: dict[str, tuple[str, str]], rates: dict[str, list[float]]
) -> Reading:
    """Each job's rates, and the ratios of two that were measured in the same round."""
    beside = {
        name: [mine / theirs for mine, theirs in zip(rates[mine_name], rates[other], strict=True)]
        for name, (mine_name, other) in ratios.items()
    }
    return Reading({}, rounds={**rates, **beside}, foreign=found["foreign"])


def _freshness(path: Path, amounts: Amounts) -> Reading:
    from bench.spark import measuring

    found = measuring.freshness(path, **amounts)
    ordered = sorted(found["took_ms"]["plain"])
    values = {f"p{percent}": percentile(ordered, percent) for percent in FRESHNESS_PERCENTS}
    return Reading(values, {"p50": ordered}, foreign=found["foreign"])


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
        (
            Part("p50", "{per_second} single publishes a second, publish to foreachBatch, p50", "ms", 500, True),
            Part("p95", "{per_second} single publishes a second, publish to foreachBatch, p95", "ms", 1_000, True),
            Part("p99", "{per_second} single publishes a second, publish to foreachBatch, p99", "ms", None, True),
        ),
        _freshness,
        {"count": 400, "per_second": 20, "warm_batches": 60},
        {"count": 60, "warm_batches": 20},
        rounds_max=3,
        seconds=45,
        quick_seconds=25,
        in_quick=False,
        missing=sessions.missing,
    ),
)
