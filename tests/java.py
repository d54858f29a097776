"""Whether Spark can run here, and how it starts soon. Run as a program, it makes what that takes, if it is missing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

JAVA_INSTALL = "apt-get install default-jre-headless"

ARCHIVE = Path(sys.prefix) / "spark-pipeline.jsa"
"""The classes of a Spark that has run the pipeline once, as Java has them in memory: with it Spark starts in half of
the time. It is made by `make setup` and `make test`; another Java than the one that wrote it ignores it.
"""
_UNARCHIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SHORT_LIVED = f"{_UNARCHIVED} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.is_file() else _UNARCHIVED
"""Options of Java for a process that ends before it were worth compiling well, beside others on few cores."""
OF_DRIVERS = {"SPARK_SUBMIT_OPTS": SHORT_LIVED, "SPARK_LAUNCHER_OPTS": _UNARCHIVED}
"""Environment variables by which every driver's Java has them, and the one that puts its command line together."""


def start_soon() -> None:
    """Have every Spark of this process, and of those that it starts, begin like that."""
    os.environ.update(OF_DRIVERS)
    os.environ["SHORT_LIVED_JAVA"] = SHORT_LIVED  # For programs of the tests that have not got this module.


def compiled_home() -> dict[str, str]:
    """The variable by which a Spark that `sealane.spark.session()` does not start has its Python processes as soon as
    one that it does; they run on a Python that has what this one has.
    """
    from sealane.spark.home import HOME, linked_home

    home = linked_home()
    return {} if home is None else {HOME: str(home)}


def has_java() -> bool:
    """Where Spark looks for it: in `JAVA_HOME` if that is set, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java") is not None


def make_archive() -> None:
    """Let a Spark run that does a bit of everything, and keep its classes."""
    import sealane.spark

    unfinished = ARCHIVE.with_suffix(".new")
    with tempfile.TemporaryDirectory() as directory:
        spark = sealane.spark.session(
            master="local[2]",
            spark_driver_memory="1g",
            spark_driver_extraJavaOptions=f"{_UNARCHIVED} -XX:ArchiveClassesAtExit={unfinished} -Xlog:disable",
            spark_sql_warehouse_dir=f"{directory}/warehouse",
            spark_sql_shuffle_partitions=2,
        )
        _do_a_bit_of_everything(Path(directory))
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()  # The archive is written as it ends.
    if unfinished.is_file():
        unfinished.replace(ARCHIVE)


def _do_a_bit_of_everything(directory: Path) -> None:
    """With the session that there is."""
    from pyspark.sql import SparkSession
    from typer.testing import CliRunner

    import sealane
    from sealane.cli.main import app
    from sealane.testing.node_process import NodeProcess

    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(1_000).selectExpr("id", "cast(id as string) as payload", "id % 7 as key")
    rows.groupBy("key").count().orderBy("key").collect()
    rows.toArrow()
    with NodeProcess(directory / "data") as node, sealane.connect_sync(node.url) as lane:
        write = rows.select("payload").write.format("sealane").mode("append").option("url", node.url)
        write.option("topic", "orders").save()
        read = spark.readStream.format("sealane").option("url", node.url).load("orders").select("payload")
        copy = read.writeStream.format("sealane").option("url", node.url).option("topic", "copies")
        copy.option("checkpointLocation", str(directory / "copy")).trigger(availableNow=True).start().awaitTermination()
        retry = sealane.Retry("fixed", 0.0, attempts_max=2)
        for number, message in enumerate(lane.consume("orders", "billing", retry=retry)):
            if number == 20:
                break
            if number % 5:
                message.ack()
            else:
                message.nack(reason="no address")
        lake = ["--lake", str(directory / "lake"), "--data", str(directory / "nobody")]
        for _ in range(2):
            lane.publish_many("orders", [b"%d" % number for number in range(20)])
            run = ["run", "--once", "--url", node.url, "--topics", "orders", "--bodies", "sealed"]
            done = CliRunner().invoke(app, ["pipeline", *run, *lake])
            assert done.exit_code == 0, done.output
        report = ["report", "--out", str(directory / "report.html")]
        for command in (["reconcile"], report, ["sql", "SELECT count(*) FROM dead_letters"], ["backfill"]):
            CliRunner().invoke(app, ["pipeline", *command, *lake])


if __name__ == "__main__":
    if has_java() and not ARCHIVE.is_file():
        make_archive()
