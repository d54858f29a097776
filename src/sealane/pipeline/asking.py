"""The tables of the lake by their names, in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealane.pipeline.facts.views import dead_letters, traffic
from sealane.pipeline.lake.tables import DELIVERIES, RAW_HISTORY, RAW_MESSAGES, Lake, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_MAX = 10_000
"""What is answered at once: more than anybody reads."""


def read(spark: SparkSession, lake: Lake, table: Table) -> DataFrame:
    """A table, which is there; columns that came later are null in older rows."""
    return spark.read.option("mergeSchema", "true").parquet(str(lake.path(table)))


def ask_tables(spark: SparkSession, lake_path: Path, text: str) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows of a statement of Spark SQL, with bytes in hex and times as text."""
    lake = Lake(lake_path)
    for table in lake.tables():
        if lake.exists(table):
            read(spark, lake, table).createOrReplaceTempView(table.view)
    _offer_views(spark, lake)
    answer = spark.sql(text).limit(ROWS_MAX)
    return answer.columns, [[shown(value) for value in row] for row in answer.collect()]


def _offer_views(spark: SparkSession, lake: Lake) -> None:
    if lake.exists(DELIVERIES):
        deliveries = read(spark, lake, DELIVERIES)
        history = read(spark, lake, RAW_HISTORY) if lake.exists(RAW_HISTORY) else None
        traffic(read(spark, lake, RAW_MESSAGES), deliveries, history).createOrReplaceTempView("traffic")
        dead_letters(deliveries).createOrReplaceTempView("dead_letters")


def shown(value: Any) -> Any:
    """As JSON and a table can have it."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, int | float | str | None):
        return value
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return str(value)
