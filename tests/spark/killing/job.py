"""The job: a batch write under a transaction, or a stream from one topic into another. It may be run many times.

    python -m tests.spark.killing.job URL DIRECTORY PARTITIONS batch|stream

It stands in a process of its own, with Java in its process group, so that all of it can be killed at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import sealane.spark
from tests.java import SHORT_LIVED
from tests.spark.killing.killing_source import KillingDataSource
from tests.spark.killing.plan import GROUP, LOOK_SECONDS, Plan, Step

BATCH_TOPIC = "batch"
STREAM_TOPIC = "stream"
SOURCE_TOPIC = "source"
MICRO_BATCH_ROWS = 600
TRANSACTION = "load-1"
BATCH_ROWS = 600


def main(url: str, directory: Path, partitions: int, kind: str) -> None:
    os.environ[GROUP] = str(os.getpgid(0))
    spark = sealane.spark.session(
        "killed",
        master="local[2,4]",  # A task may fail three times.
        spark_driver_memory="1g",
        spark_driver_extraJavaOptions=SHORT_LIVED,
        spark_sql_shuffle_partitions=2,
        spark_sql_execution_arrow_maxRecordsPerBatch=50,
        spark_local_dir=str(directory / "local"),
        spark_sql_warehouse_dir=str(directory / "warehouse"),
    )
    spark.dataSource.register(KillingDataSource)
    if kind == "batch":
        write_batch(spark, url, partitions)
    else:
        write_stream(spark, url, directory, partitions)


def write_batch(spark: SparkSession, url: str, partitions: int) -> None:
    rows = spark.range(0, BATCH_ROWS, 1, partitions).selectExpr("cast(id as string) as payload")
    writer = rows.write.format("sealane").mode("append").option("url", url)
    writer.option("topic", BATCH_TOPIC).option("transaction", TRANSACTION).save()


def write_stream(spark: SparkSession, url: str, directory: Path, partitions: int) -> None:
    source = spark.readStream.format("sealane").option("url", url).option("topic", SOURCE_TOPIC)
    rows: DataFrame = source.option("maxMessagesPerTrigger", MICRO_BATCH_ROWS).load()
    rows = rows.select("payload").repartition(partitions)
    writer = rows.writeStream.format("sealane").option("url", url).option("topic", STREAM_TOPIC)
    checkpoint = directory / "checkpoint"
    threading.Thread(target=watch_commits, args=(checkpoint,), daemon=True).start()
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def watch_commits(checkpoint: Path) -> None:
    """Come by the last step of the first micro-batch: Spark has written that it is done."""
    while not (checkpoint / "commits" / "0").exists():
        time.sleep(LOOK_SECONDS)
    Plan.of_this_job().come_by("stream", Step.AFTER_THE_COMMIT_LOG)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
