"""Whether Spark can run here, and how it starts soon. Run as a program, it makes what that takes, if it is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

JAVA_INSTALL = "apt-get install default-jre-headless"

ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""The classes of a Spark that has run once, as Java has them in memory: with it Spark starts in half of the time. It is
made by `make setup`; another Java than the one that wrote it ignores it.
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
    spark = sealane.spark.session(
        spark_driver_extraJavaOptions=f"{_UNARCHIVED} -XX:ArchiveClassesAtExit={unfinished} -Xlog:disable",
        spark_sql_warehouse_dir=str(ARCHIVE.parent / "warehouse"),
    )
    rows = spark.range(1_000).selectExpr("id", "cast(id as string) as text", "id % 7 as key")
    rows.groupBy("key").count().collect()
    rows.toArrow()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # The archive is written as it ends.
    if unfinished.is_file():
        unfinished.replace(ARCHIVE)


if __name__ == "__main__":
    if has_java() and not ARCHIVE.is_file():
        make_archive()
