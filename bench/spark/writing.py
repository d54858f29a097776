"""A DataFrame into a topic, beside the same DataFrame into Parquet, in one session."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench.clients.order import Result
from bench.spark.order import SparkOrder
from bench.spark.reading import NotTheSameRows, into_nothing
from bench.spark.sessions import sealane_session
from bench.spark.stored import PARTITIONS, unique_payloads
from bench.spark.turns import Job, take_turns

PAYLOADS, INTO_PARQUET = "payloads", "into-parquet"


def write_topics(order: SparkOrder) -> Result:
    """Rows a second into each topic, into Parquet, and into nothing, which is what making the rows takes.

    The rows are in Spark's memory before: one column of random payloads, in two partitions.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = Path(order.directory)
    spark = sealane_session(directory, order.settings)
    made = directory / "made"
    made.mkdir()
    for part in range(PARTITIONS):
        table = pa.table({"payload": unique_payloads(order.count // PARTITIONS, order.size)})
        pq.write_table(table, made / f"{part}.parquet")
    frame = spark.read.parquet(str(made)).coalesce(PARTITIONS).cache()
    if (there := frame.count()) != order.count:
        raise NotTheSameRows(f"{there:,} rows were made instead of {order.count:,}")

    jobs = {
        name: Job(frame.write.format("sealane").options(**topic.options).mode("append").save, order.count)
        for name, topic in order.topics.items()
    }
    path = directory / "written"
    jobs[INTO_PARQUET] = Job(partial(frame.write.parquet, str(path)), order.count, partial(shutil.rmtree, path))
    jobs[PAYLOADS] = Job(partial(into_nothing, frame), order.count)
    found = take_turns(jobs, rounds=order.rounds, warm_rounds=order.warm_rounds)
    for topic in order.topics.values():
        with topic.lane() as lane:
            (there_now,) = lane.logs(topic.name)
        written = sum(each.end - each.start for each in there_now.partitions)
        if written != order.count * (order.rounds + order.warm_rounds):
            raise NotTheSameRows(f"{topic.name} has {written:,} messages instead of {order.count:,} for each round")
    return {"rates": found.rates, "foreign": found.foreign}
