"""What was seen of each node and hour is kept in the lake: telemetry is kept for days, and learned from for weeks."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.routes.curves import LOOKBACK_HOURS, NODE_HOURS
from sealane.whole_files import PUBLIC, replace_file

KEPT = 2
"""A version that is made again begins with what the one before it has left."""


def remembered(lake: Lake, version: int) -> pa.Table:
    """What a version begins with: all that the last one before it knew."""
    before = [path for path in _folder(lake).glob("*.parquet") if int(path.stem) < version]
    return pq.ParquetFile(max(before)).read() if before else NODE_HOURS.empty_table()


def remember(lake: Lake, version: int, seen: pa.Table) -> None:
    """Keep what was seen for the version after this one."""
    data = io.BytesIO()
    pq.write_table(seen, data, compression="zstd")
    replace_file(_folder(lake) / f"{version:012d}.parquet", data.getvalue(), PUBLIC)
    for path in sorted(_folder(lake).glob("*.parquet"))[:-KEPT]:
        path.unlink(missing_ok=True)


def added(before: pa.Table, new: pa.Table, version: int) -> pa.Table:
    """Both, as far as a version looks back; of an hour of a node that is in both, what is new."""
    places = set(zip(new["hour"].to_pylist(), new["node"].to_pylist(), strict=True))
    hours, nodes = before["hour"].to_pylist(), before["node"].to_pylist()
    kept = [
        hour >= version - LOOKBACK_HOURS and (hour, node) not in places for hour, node in zip(hours, nodes, strict=True)
    ]
    return pa.concat_tables([before.filter(pa.array(kept, pa.bool_())), new]).combine_chunks()


def _folder(lake: Lake) -> Path:
    return lake.root / "state" / "routes"
