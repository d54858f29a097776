"""The job: batch writes under transactions, and streams from one topic into others, all at once. It may be run again.

    python -m tests.spark.killing.job URL DIRECTORY PARTITIONS

It stands in a process of its own, with Java in its process group, so that all of it can be killed at once.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import sealane.spark
from tests.spark.killing.killing_source import KillingDataSource
from tests.spark.killing.plan import LOOK_SECONDS, Plan, Step

STREAMS = tuple(f"stream-{number}" for number in range(len(Step)))
BATCHES = ("batch-0", "batch-1")
SOURCE_TOPIC = "source"
MICRO_BATCH_ROWS = 600
BATCH_ROWS = 600


def main(url: str, directory: Path, partitions: int) -> None:
    spark = sealane.spark.session(
        "killed",
        # Tasks that are held keep their cores; a task may fail three times.
        master="local[8,4]",
        spark_driver_memory="1g",
        spark_sql_shuffle_partitions=2,
        spark_sql_execution_arrow_maxRecordsPerBatch=50,
        spark_local_dir=str(directory / "local"),
        spark_sql_warehouse_dir=str(directory / "warehouse"),
    )
    spark.dataSource.register(KillingDataSource)
    queries = [start_stream(spark, url, directory / topic, topic, partitions) for topic in STREAMS]
    for topic in STREAMS:
        threading.Thread(target=watch_commits, args=(directory / topic, topic), daemon=True).start()
    with ThreadPoolExecutor(len(BATCHES)) as threads:
        writing = [threads.submit(write_batch, spark, url, topic, partitions) for topic in BATCHES]
        for query in queries:
            query.awaitTermination()
        for each in writing:
            each.result()


def write_batch(spark: SparkSession, url: str, topic: str, partitions: int) -> None:
    # A thread has no session of its own accord, and without one Spark does not find the data source.
    assert spark._jvm is not None
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
    rows = spark.range(0, BATCH_ROWS, 1, partitions).selectExpr("cast(id as string) as payload")
    writer = rows.write.format("sealane").mode("append").option("url", url)
    writer.option("topic", topic).option("transaction", f"load of {topic}").save()


def start_stream(spark: SparkSession, url: str, checkpoint: Path, topic: str, partitions: int) -> StreamingQuery:
    source = spark.readStream.format("sealane").option("url", url).option("topic", SOURCE_TOPIC)
    rows = source.option("maxMessagesPerTrigger", MICRO_BATCH_ROWS).load().select("payload").repartition(partitions)
    writer = rows.writeStream.format("sealane").option("url", url).option("topic", topic)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    # One after another: Spark gives the Python of a source 10 seconds to start.
    while query.isActive and query.status["message"] == "Initializing sources":
        time.sleep(LOOK_SECONDS)
    return query


def watch_commits(checkpoint: Path, topic: str) -> None:
    """Come by the last step of the first micro-batch: Spark has written that it is done."""
    while not (checkpoint / "commits" / "0").exists():
        time.sleep(LOOK_SECONDS)
    Plan.of_this_job().come_by(topic, Step.AFTER_THE_COMMIT_LOG)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
