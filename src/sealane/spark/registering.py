"""`register(spark)`: makes `format("sealane")` known to a Spark session, whatever kind of session it is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from sealane.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

SPARK_OLDEST = (4, 2)
"""The first Spark whose Python sources can be told how much to read at a time (`latestOffset(start, limit)`)."""
LOCAL_MASTER = "local"
WORKER_PYTHON = "PYSPARK_PYTHON"
"""The environment variable by which Spark is told which Python its workers run on."""


def register(spark: SparkSession, *, by_value: bool = False) -> SparkSession:
    """Make `format("sealane")` known to this session and return the session.

    It works in a notebook, under `spark-submit` and over Spark Connect, and may be called again. With `by_value` the
    package travels with each query, so that it need not be installed where the workers are; what it depends on must be.

    Raises `InvalidArgument` if this Spark is too old.
    """
    _check_version(spark)
    _use_this_python(spark)
    spark.dataSource.register(_data_source(by_value))
    return spark


def _data_source(by_value: bool) -> type[DataSource]:
    if by_value:
        from sealane.spark.parcel import parcel
        from sealane.spark.shipping import shipped

        return shipped(parcel())
    from sealane.spark.data_source import SealaneDataSource

    return SealaneDataSource


def _check_version(spark: SparkSession) -> None:
    """Connect's server may be another Spark than the client: it is the session that is asked."""
    version = spark.version
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < SPARK_OLDEST:
        oldest = ".".join(map(str, SPARK_OLDEST))
        raise InvalidArgument(
            "spark", f"is a session of Spark {version}; Sealane needs {oldest} or newer: upgrade pyspark"
        )


def _use_this_python(spark: SparkSession) -> None:
    """Without `PYSPARK_PYTHON` Spark runs its workers on the `python3` of the PATH, even where they are on this machine
    and the driver is in a virtual environment that has what they need.
    """
    context = getattr(spark, "_sc", None)  # A session of Spark Connect has none, and its server decides.
    if context is not None and WORKER_PYTHON not in os.environ and context.master.startswith(LOCAL_MASTER):
        context.pythonExec = sys.executable
