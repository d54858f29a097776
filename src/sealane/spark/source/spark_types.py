"""The columns of the source in Spark's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from sealane.spark.source.rows.columns import MESSAGE_SCHEMA
from sealane.spark.source.rows.history import HISTORY_COLUMNS
from sealane.spark.source.rows.shaping import row_schema

if TYPE_CHECKING:
    from sealane.spark.values import Values


def message_columns() -> StructType:
    """The columns that every message has."""
    return from_arrow_schema(MESSAGE_SCHEMA)


def history_columns() -> StructType:
    """The columns of what has happened to messages."""
    return from_arrow_schema(HISTORY_COLUMNS)


def spark_schema(values: Values | None = None, *, opens: bool = False) -> StructType:
    """The columns of a read with these typed values, in their order; `opens`: with decryption keys."""
    return from_arrow_schema(row_schema(values, opens=opens))
