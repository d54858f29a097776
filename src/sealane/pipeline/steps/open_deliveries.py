"""Deliveries that are under way: what a micro-batch of history leaves to the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.facts.delivery_runs import DELIVERY_RUNS
from sealane.pipeline.lake.tables import Lake
from sealane.whole_files import PUBLIC, replace_file

STATES_KEPT = 2
"""A micro-batch that is done again begins with what the one before it has left."""


class OpenDeliveries:
    """A small file for each micro-batch, by its number."""

    def __init__(self, lake: Lake) -> None:
        self._root = lake.root / "state" / "deliveries"

    def left_by(self, number: int) -> pa.Table | None:
        """What this micro-batch has left; None if there is none of that number."""
        path = self._path(number)
        return pq.read_table(path, partitioning=None).cast(DELIVERY_RUNS) if path.exists() else None

    def keep(self, deliveries: pa.Table, number: int) -> None:
        """Those of these deliveries that are open are what the next micro-batch begins with."""
        sink = pa.BufferOutputStream()
        pq.write_table(deliveries.filter(deliveries["outcome"].is_null()), sink)
        replace_file(self._path(number), sink.getvalue().to_pybytes(), PUBLIC)
        for path in self._root.glob("[0-9]*"):
            if int(path.stem) <= number - STATES_KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _path(self, number: int) -> Path:
        return self._root / f"{number:012d}.parquet"
