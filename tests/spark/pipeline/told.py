"""History and messages as the tables have them, written by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sealane.spark.source.spark_types import history_columns, message_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Told:
    """History as a journal tells it, row by row."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def tell(self, event: str, *runs: tuple[int, int], subscription: str = "billing", **more: Any) -> None:
        self.rows.append(
            {
                "entry": len(self.rows),
                "event": event,
                "subscription": subscription,
                "runs": [{"first": first, "stop": stop} for first, stop in runs],
                "time": START + timedelta(seconds=len(self.rows)),
                "domain": "default",
                "topic": "orders",
                "partition": 0,
                **more,
            }
        )

    def frame(self, spark: SparkSession, first: int = 0, stop: int | None = None) -> DataFrame:
        return framed(spark, self.rows[first:stop], history_columns())


def message_rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": offset.to_bytes(16, "big"),
            "payload": b"x" * offset,
            "priority": 5,
            "created": START,
            "domain": "default",
            "topic": "orders",
            "partition": 0,
            "offset": offset,
        }
        for offset in range(count)
    ]


def laid_out(messages: DataFrame) -> DataFrame:
    """The rows of the table of messages, without payloads."""
    others = [name for name in messages.columns if name != "payload"]
    left_out = "CAST(NULL AS BINARY) AS payload"
    return messages.selectExpr(*others, left_out, "octet_length(payload) AS bytes", "to_date(created) AS date")


def messages(spark: SparkSession, count: int) -> DataFrame:
    """Rows of the table, as the pipeline writes it unless it is told otherwise."""
    return laid_out(framed(spark, message_rows(count), message_columns()))


def framed(spark: SparkSession, rows: list[dict[str, Any]], columns: StructType) -> DataFrame:
    """Rows as the table has them; what a row does not say is null."""
    names = columns.fieldNames()
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], columns)
