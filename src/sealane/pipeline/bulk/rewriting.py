"""Rewriting files of a table one by one, each by one rename: the old file is there, or the new one.

So there is nothing to finish after a crash, and no record is needed. Whoever was stopped goes on with the files that
still need it. Compaction must not run meanwhile: have the lake (`sealane.pipeline.lake.holding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.lake.tables import STAGING, Lake, Table
from sealane.whole_files import sync

_NAME = "rewriting"

Told = Callable[[int, int], None]
"""Is told how many files are done, and of how many."""


@dataclass(slots=True)
class BulkReport:
    """What a job has looked at, found and changed; of a dry run, `changed` is 0."""

    files: int = 0
    rows: int = 0
    """Rows of the files that were looked into."""
    found: int = 0
    changed: int = 0
    files_changed: int = 0
    closed: int = 0
    """Rows whose body could not be looked into: sealed end to end, or by a key that is gone."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Some rows of a file as they are to be: the same, in the same order."""

    batch: pa.RecordBatch
    found: int
    closed: int = 0


Change = Callable[[pa.RecordBatch, str], Changed]
"""Is given rows and the domain that they are of."""


def all_files(lake: Lake, tables: Iterable[Table]) -> list[tuple[Table, Path]]:
    return [(table, path) for table in tables for path in lake.files(table)]


def domain_of(path: Path) -> str:
    """The domain whose rows a file has, by its directory's name, in which Spark escapes some characters."""
    return next(unquote(part.removeprefix("domain=")) for part in path.parts if part.startswith("domain="))


def rewrite(lake: Lake, table: Table, path: Path, change: Change, report: BulkReport, *, dry_run: bool) -> None:
    """Put a file in the place of this one, with its rows changed, if there is anything to change in it."""
    staged = lake.path(table) / STAGING / _NAME / path.name
    found = 0
    try:
        with pq.ParquetFile(path) as old, ExitStack() as stack:
            writer = None
            for place, batch in enumerate(old.iter_batches()):
                changed = change(batch, domain_of(path))
                found += changed.found
                report.rows += len(batch)
                report.closed += changed.closed
                if writer is None and changed.found and not dry_run:
                    writer = stack.enter_context(_writer(staged, old))
                    for before in islice(old.iter_batches(), place):
                        writer.write_batch(before)
                if writer is not None:
                    writer.write_batch(changed.batch)
        if writer is not None:
            sync(staged)
            staged.replace(path)
            sync(path.parent)
            report.changed += found
            report.files_changed += 1
    finally:
        staged.unlink(missing_ok=True)
    report.files += 1
    report.found += found


def _writer(path: Path, like: pq.ParquetFile) -> pq.ParquetWriter:
    """Times are written as they are in the other file: Spark reads no other nanoseconds than those of 96 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = (like.schema.column(place) for place in range(len(like.schema)))
    has_int96 = any(column.physical_type == "INT96" for column in columns)
    return pq.ParquetWriter(path, like.schema_arrow, compression="zstd", use_deprecated_int96_timestamps=has_int96)


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), column.cast(batch.schema.field(place).type))
