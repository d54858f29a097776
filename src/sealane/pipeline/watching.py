"""How the pipeline is doing, by what is in the lake: no Spark is needed to look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from sealane.pipeline.lake.tables import Lake, Table


@dataclass(frozen=True, slots=True)
class TableStatus:
    table: str
    rows: int
    files: int
    size_bytes: int
    changed: float | None
    """When a step came in last, in seconds since 1970."""


def look(lake_path: Path) -> list[TableStatus]:
    """Every table there is something of."""
    lake = Lake(lake_path)
    return [_status(lake, table) for table in lake.tables()]


def _status(lake: Lake, table: Table) -> TableStatus:
    files = lake.files(table)
    changed = [path.stat().st_mtime for path in lake.log_path(table).rglob("*.json")]
    return TableStatus(
        table.full_name,
        sum(pq.read_metadata(path).num_rows for path in files),
        len(files),
        sum(path.stat().st_size for path in files),
        max(changed, default=None),
    )
