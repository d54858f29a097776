"""Topics into nothing and into Parquet, beside Parquet and beside tuples, in one session."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clients.order import Result
from bench.spark.order import SparkOrder
from bench.spark.sessions import sealane_session
from bench.spark.turns import Job, take_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARQUET, PARQUET_TO_PARQUET, TUPLES = "parquet", "parquet-to-parquet", "tuples"


class NotTheSameRows(RuntimeError):
    """What is to be compared does not have as many rows as it should."""


def read_topics(order: SparkOrder) -> Result:
    """Rows a second from each topic into nothing, from the first one into Parquet, and of what Spark does by itself."""
    from bench.spark.tuple_source import FORMAT, TupleSource

    directory = Path(order.directory)
    spark = sealane_session(directory, order.settings)
    spark.dataSource.register(TupleSource)
    frames = {name: _topic(spark, topic.options, order.count) for name, topic in order.topics.items()}
    first = next(iter(frames.values()))

    # Spark's own reading is measured on the same rows, as Spark itself has written them.
    same, less = directory / "same", directory / "less"
    first.write.parquet(str(same))
    spark.read.parquet(str(same)).limit(order.less_count).repartition(2).write.parquet(str(less))
    parquet = spark.read.parquet(str(same))
    tuples = spark.read.format(FORMAT).load(str(less))

    jobs = {name: Job(partial(into_nothing, frame), order.count) for name, frame in frames.items()}
    jobs[PARQUET] = Job(partial(into_nothing, parquet), order.count)
    jobs[f"{next(iter(frames))}-to-parquet"] = _into_parquet(first, directory / "from-topic", order.count)
    jobs[PARQUET_TO_PARQUET] = _into_parquet(parquet, directory / "from-parquet", order.count)
    jobs[TUPLES] = Job(partial(into_nothing, tuples), order.less_count)
    found = take_turns(jobs, rounds=order.rounds, warm_rounds=order.warm_rounds)
    return {"rates": found.rates, "foreign": found.foreign}


def into_nothing(frame: DataFrame) -> None:
    """Every column of every row is made, and dropped."""
    frame.write.format("noop").mode("overwrite").save()


def _into_parquet(frame: DataFrame, path: Path, rows: int) -> Job:
    return Job(partial(frame.write.parquet, str(path)), rows, partial(shutil.rmtree, path))


def _topic(spark: SparkSession, options: dict[str, str], count: int) -> DataFrame:
    frame = spark.read.format("sealane").options(**options).load()
    if (there := frame.count()) != count:
        raise NotTheSameRows(f"{options['topic']} at {options['url']} has {there:,} rows instead of {count:,}")
    return frame
