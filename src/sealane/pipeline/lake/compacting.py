"""Small files become large ones: a query that looks every few seconds writes many, and readers pay for each."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.lake.appending import RECORDS_KEPT
from sealane.pipeline.lake.log import Move, Step, TableLog
from sealane.pipeline.lake.parquet_files import parquet_writer
from sealane.pipeline.lake.tables import STAGING, Lake, Table
from sealane.whole_files import sync

SMALL_BYTES = 32 << 20
"""A file of this size or more is left as it is."""
SMALL_FILES = 16
"""Of one directory, so many small files are worth being put together."""
TARGET_BYTES = 256 << 20
"""About what a compacted file may have."""
WRITER = "compaction"


def compact(lake: Lake, table: Table, *, small_files: int = SMALL_FILES) -> Step | None:
    """Put the small files of each directory together, in one step; None if there is nothing to do.

    Rows keep their order within a directory. For a moment readers may see a directory before and after at once, so
    whoever computes from the table does not do it meanwhile: one process runs both.
    """
    log = TableLog(lake, table)
    last = log.last(WRITER)
    if last is not None:
        log.carry_out(last)
    groups = list(_groups(lake, table, small_files))
    if not groups:
        return None
    number = 0 if last is None else last.number + 1
    name = f"{WRITER}-{number:012d}"
    staging = lake.staging_path(table, name)
    shutil.rmtree(staging, ignore_errors=True)
    root = lake.path(table)
    adds, removes, rows = [], [], 0
    for index, group in enumerate(groups):
        place = group[0].parent.relative_to(root) / f"{name}-{index:04d}.parquet"
        rows += _write(staging / place, group)
        adds.append(Move(f"{STAGING}/{name}/{place}", str(place)))
        removes += [str(path.relative_to(root)) for path in group]
    step = Step(writer=WRITER, number=number, adds=adds, removes=removes, rows=rows)
    log.commit(step)
    log.forget_before(WRITER, number - RECORDS_KEPT)
    shutil.rmtree(staging, ignore_errors=True)
    return step


def _groups(lake: Lake, table: Table, small_files: int) -> Iterator[list[Path]]:
    """Files that are put together, each list in its order."""
    small: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in lake.files(table):
        if path.stat().st_size < SMALL_BYTES:
            small[path.parent].append(path)
    for paths in small.values():
        if len(paths) >= small_files:
            yield from _cut(paths)


def _cut(paths: list[Path]) -> Iterator[list[Path]]:
    group: list[Path] = []
    size = 0
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns):
        if group and size + path.stat().st_size > TARGET_BYTES:
            yield group
            group, size = [], 0
        group.append(path)
        size += path.stat().st_size
    if len(group) > 1:
        yield group


def _write(path: Path, group: list[Path]) -> int:
    """One file of several, with every column that any of them has. Returns how many rows it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.unify_schemas([pq.read_schema(each).remove_metadata() for each in group], promote_options="permissive")
    rows = 0
    with path.open("wb") as file, parquet_writer(file, schema) as writer:
        for each in group:
            for batch in pq.ParquetFile(each).iter_batches():
                writer.write_table(_fitted(pa.Table.from_batches([batch]), schema))
                rows += batch.num_rows
    sync(path)
    return rows


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
