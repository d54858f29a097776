"""A session that is ready to use, and says nothing unless asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_run_on_the_python_of_the_driver(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    executable = udf(lambda _: __import__("sys").executable, "string")

    assert [row[0] for row in spark.range(1).select(executable("id")).collect()] == [sys.executable]


def test_workers_load_the_installed_package_which_is_compiled(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    loaded = udf(lambda _: __import__("pyspark").__file__, "string")

    assert [row[0] for row in spark.range(1).select(loaded("id")).collect()] == [pyspark.__file__]


def test_times_are_utc_and_the_web_page_is_off(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
