"""The program of a driver: topics are written and read, in one go and as streams, on whatever Spark it is given.

`python job.py '{"master": …, "url": …, …}'`; what it found is the last line that it prints, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sealane
from sealane.spark import register, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SHORT_LIVED = os.environ["SHORT_LIVED_JAVA"]
"""As in `tests.java`, which is not where this runs."""
ROWS = 2_000
PARTITIONS = 4
EXECUTORS = 2
VICTIM = 1
"""The partition whose executor is killed while it writes."""
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.02


class Job:
    """One driver and its session; topics are named by their role."""

    def __init__(self, spark: SparkSession, url: str, folder: Path, prefix: str) -> None:
        self.spark = spark
        self._url = url
        self._folder = folder
        self._prefix = prefix

    def write(self, rows: DataFrame, topic: str) -> None:
        rows.write.format("sealane").options(url=self._url, topic=self._prefix + topic).mode("append").save()

    def read(self, topic: str) -> int:
        return self.spark.read.format("sealane").options(url=self._url, topic=self._prefix + topic).load().count()

    def stream(self, source: str, sink: str, victim: Path | None = None) -> None:
        """Everything that is in one topic, to another one, in several micro-batches."""
        options = {"url": self._url, "minPartitions": str(PARTITIONS), "maxMessagesPerTrigger": str(ROWS // 2)}
        rows = self.spark.readStream.format("sealane").options(topic=self._prefix + source, **options).load()
        rows = rows.select("payload")
        query = (
            (rows if victim is None else stalling(rows, victim))
            .writeStream.format("sealane")
            .options(url=self._url, topic=self._prefix + sink)
            .option("checkpointLocation", str(self._folder / f"{sink}-checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def rows(self) -> DataFrame:
        """Payloads "0", "1", …, in several partitions."""
        return self.spark.range(0, ROWS, 1, PARTITIONS).selectExpr("cast(cast(id as string) as binary) as payload")


def stalling(rows: DataFrame, victim: Path) -> DataFrame:
    """The same rows; but one task, when it has let some of them through, tells its executor's pid and goes no further.

    Only at its first attempt: `victim` is the file that says it, and is there from then on.
    """

    def let_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == 2 and context.partitionId() == VICTIM and not victim.exists():
                whole = victim.with_suffix(".part")
                whole.write_text(str(executor_pid()))
                whole.rename(victim)
                time.sleep(WAIT_SECONDS)
                raise AssertionError("the executor was not killed")
            yield batch

    return rows.mapInArrow(let_through, rows.schema)


def executor_pid() -> int:
    """A Python worker is a child of its daemon, which is a child of the executor."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def kill_when_told(victim: Path) -> threading.Thread:
    """Kill the executor whose pid will be in the file."""

    def wait_and_kill() -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not victim.exists() and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        os.kill(int(victim.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


def executors(spark: SparkSession, meeting: Path) -> list[dict[str, Any]]:
    """Who they are, and which Sealane they have without being sent one. Two tasks meet, so that one cannot do both."""
    meeting.mkdir()

    def look(number: int, _: Iterable[int]) -> Iterator[dict[str, Any]]:
        import importlib.util

        (meeting / str(number)).touch()
        deadline = time.monotonic() + WAIT_SECONDS
        while len(list(meeting.iterdir())) < EXECUTORS and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        found = importlib.util.find_spec("sealane")
        yield {"pid": executor_pid(), "python": sys.executable, "sealane": found.origin if found else None}

    return spark.sparkContext.parallelize(range(EXECUTORS), EXECUTORS).mapPartitionsWithIndex(look).collect()


def main(master: str, url: str, prefix: str, by_value: bool, kill: bool) -> None:
    spark = session(
        "sealane-cluster",
        master=master,
        spark_driver_memory="512m",
        spark_executor_memory="512m",
        spark_executor_extraJavaOptions=SHORT_LIVED,
        spark_driver_host="127.0.0.1",
        spark_scheduler_minRegisteredResourcesRatio=1.0,
        spark_sql_shuffle_partitions=2,
        spark_sql_execution_arrow_maxRecordsPerBatch=50,
    )
    register(spark, by_value=by_value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found: dict[str, Any] = {"driver": sealane.__file__, "executors": executors(spark, folder / "meeting")}
        job = Job(spark, url, folder, prefix)
        if kill:
            killing = kill_when_told(folder / "batch-victim")
            job.write(stalling(job.rows(), folder / "batch-victim"), "batch")
            killing.join()
            killing = kill_when_told(folder / "stream-victim")
            job.stream("batch", "stream", folder / "stream-victim")
            killing.join()
        else:
            job.write(job.rows(), "batch")
            job.stream("batch", "stream")
        found["batch"], found["stream"] = job.read("batch"), job.read("stream")
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
