"""Files that tasks have written beside a table, and how they come to where a micro-batch has them.

Tasks do not know the micro-batch they belong to, and a task may be tried twice. So each writes files of its own under
the name of the run, and tells which; the driver brings those that were told to the directory of the micro-batch, from
which they come into the table. What nobody told of is forgotten with the run.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.message.arrow_compute import pc
from sealane.pipeline.lake.parquet_files import parquet_writer
from sealane.pipeline.lake.tables import STAGING, Lake, Table

_RUN = "run-"
"""How the directories of runs are called; those of micro-batches have their numbers."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the files of a run go until they come into their tables."""

    lake: Path
    run: str

    @classmethod
    def new(cls, lake: Lake) -> Destination:
        return cls(lake.root, f"{_RUN}{uuid.uuid4().hex}")

    def directory(self, table: Table) -> Path:
        return Lake(self.lake).staging_path(table, self.run)


def forget_runs(lake: Lake, tables: Iterable[Table]) -> None:
    """What runs have left, killed ones too. Nobody else may write these tables."""
    for table in tables:
        for path in (lake.path(table) / STAGING).glob(f"{_RUN}*"):
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Moving:
    """Brings files from the directory of a run to that of a micro-batch."""

    root: Path
    paths: Iterable[str]
    without: Mapping[str, set[int]]
    """By path: the offsets of rows that are left out."""

    def __call__(self, staging: Path) -> None:
        staging.mkdir(parents=True, exist_ok=True)
        for path in self.paths:
            (staging / path).parent.mkdir(parents=True, exist_ok=True)
            if offsets := self.without.get(path):
                _copy_without(self.root / path, staging / path, offsets)
            else:
                os.rename(self.root / path, staging / path)


def _copy_without(source: Path, target: Path, offsets: set[int]) -> None:
    """Nothing is written of a file of which nothing is left."""
    left_out = pa.array(sorted(offsets), pa.int64())
    file = pq.ParquetFile(source)
    writer: pq.ParquetWriter | None = None
    for group in range(file.num_row_groups):
        rows = file.read_row_group(group)
        rows = rows.filter(pc.invert(pc.is_in(rows["offset"], left_out)))
        if len(rows):
            writer = writer or parquet_writer(target, file.schema_arrow)
            writer.write_table(rows, row_group_size=len(rows))
    if writer is not None:
        writer.close()
