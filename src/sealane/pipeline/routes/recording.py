"""The table of weights: each version is in it once, and what is in it is what is published."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import ROUTE_WEIGHTS, Lake
from sealane.pipeline.routes.learning import Learned
from sealane.routing.weights import ANY_TOPIC, RouteWeights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITER = "routes"
VALID_HOURS = 3
"""From the hour that they are for: the job may miss two before routers do without."""

_COLUMNS = (
    "version BIGINT, made TIMESTAMP, hour INT, topic STRING, node STRING, weight DOUBLE, expected_ms DOUBLE, "
    "load DOUBLE, messages BIGINT, date DATE"
)


def begins(version: int) -> datetime:
    """The hour that a version is for."""
    return datetime.fromtimestamp(version * 3600, UTC)


def record(spark: SparkSession, lake: Lake, version: int, made: datetime, learned: Learned) -> None:
    """Make a version part of the table, once."""
    made, date = made.astimezone(UTC), begins(version).date()
    rows = [
        (
            version,
            made,
            learned.hour,
            ANY_TOPIC,
            each.node,
            each.weight,
            each.expected_ms,
            each.load,
            each.messages,
            date,
        )
        for each in learned.routes
    ]
    append_rows(lake, ROUTE_WEIGHTS, spark.createDataFrame(rows, _COLUMNS).coalesce(1), writer=WRITER, number=version)


def recorded(lake: Lake, version: int) -> RouteWeights | None:
    """A version as it is in the table, if it has come in; what a crash has left undone of that is done."""
    log = TableLog(lake, ROUTE_WEIGHTS)
    step = log.find(WRITER, version)
    if step is not None:
        log.carry_out(step)
    rows = _rows(lake, version, version)
    return _weights(rows) if len(rows) else None


def last_valid(lake: Lake, version: int) -> RouteWeights | None:
    """Of the versions before this one, the last, if routers still use it when this one begins."""
    rows = _rows(lake, version - VALID_HOURS + 1, version - 1)
    return _weights(rows.filter(pc.field("version") == pc.max(rows["version"]).as_py())) if len(rows) else None


def _rows(lake: Lake, first: int, last: int) -> pa.Table:
    dates = {begins(first).date(), begins(last).date()}
    places = {f"date={date.isoformat()}" for date in dates}
    found = [pq.ParquetFile(path).read() for path in lake.files(ROUTE_WEIGHTS) if path.parent.name in places]
    if not found:
        return pa.table({"version": pa.array([], pa.int64())})
    rows = pa.concat_tables(found, promote_options="permissive")
    return rows.filter((pc.field("version") >= first) & (pc.field("version") <= last))


def _weights(table: pa.Table) -> RouteWeights:
    # Files may have nanoseconds, which Python has no type for.
    made = table["made"].cast(pa.timestamp("us", tz="UTC"), safe=False)[0].as_py().astimezone(UTC)
    rows: list[dict[str, Any]] = table.drop_columns(["made"]).to_pylist()
    weights: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: (row["topic"], row["node"])):
        weights.setdefault(row["topic"], {})[row["node"]] = row["weight"]
    first = rows[0]
    return RouteWeights(
        version=first["version"],
        hour=first["hour"],
        made=made,
        valid_until=begins(first["version"]) + timedelta(hours=VALID_HOURS),
        weights=weights,
    )
