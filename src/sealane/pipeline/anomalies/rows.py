"""Anomalies as rows of their table, written and read without Spark: there are few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sealane.pipeline.anomalies.anomaly import Anomaly, Contribution, Series
from sealane.pipeline.lake.tables import ANOMALIES, Lake

_TIME = pa.timestamp("us", "UTC")
_OWN = ("kind", "began", "ended", "observed", "expected_low", "expected_high", "score", "recorded")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("domain", pa.string()),
        ("topic", pa.string()),
        ("subscription", pa.string()),
        ("measure", pa.string()),
        ("kind", pa.string()),
        ("began", _TIME),
        ("ended", _TIME),
        ("observed", pa.float64()),
        ("expected_low", pa.float64()),
        ("expected_high", pa.float64()),
        ("score", pa.float64()),
        ("contributed", pa.string()),
        ("recorded", _TIME),
    ]
)


def write_rows(staging: Path, anomalies: Iterable[Anomaly]) -> None:
    """Parquet files under a directory, laid out as the table is: by the date on which an anomaly began."""
    by_date: dict[date, list[Anomaly]] = {}
    for each in anomalies:
        by_date.setdefault(each.began.date(), []).append(each)
    staging.mkdir(parents=True)
    for day, some in by_date.items():
        place = staging / f"date={day.isoformat()}"
        place.mkdir()
        pq.write_table(pa.Table.from_pylist([_row(each) for each in some], SCHEMA), place / "part-0.parquet")


def read_rows(lake: Lake, *, after: datetime | None = None) -> list[Anomaly]:
    """Those that were recorded after a time, or all, in the order of their beginnings."""
    files = [str(path) for path in lake.files(ANOMALIES)]
    if not files:
        return []
    chosen = None if after is None else ds.field("recorded") > pa.scalar(after, _TIME)
    rows: Sequence[dict[str, Any]] = ds.dataset(files, schema=SCHEMA).to_table(filter=chosen).to_pylist()
    return sorted((_anomaly(row) for row in rows), key=lambda each: (each.began, str(each.id)))


def _row(anomaly: Anomaly) -> dict[str, Any]:
    series = anomaly.series
    found: dict[str, Any] = {name: getattr(anomaly, name, None) for name in SCHEMA.names}
    of_series = {name: getattr(series, name) for name in ("domain", "topic", "subscription", "measure")}
    contributed = msgspec.json.encode(anomaly.contributed).decode()
    return found | of_series | {"id": str(anomaly.id), "contributed": contributed}


def _anomaly(row: dict[str, Any]) -> Anomaly:
    return Anomaly(
        Series(row["domain"], row["topic"], row["subscription"], row["measure"]),
        contributed=msgspec.json.decode(row["contributed"], type=tuple[Contribution, ...]),
        **{name: row[name] for name in _OWN},
    )
