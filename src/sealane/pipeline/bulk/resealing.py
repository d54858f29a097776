"""Sealing anew what older keys have sealed, so that these can be given up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.message.arrow_compute import pc
from sealane.pipeline.bulk.rewriting import BulkReport, Changed, Told, all_files, rewrite, with_column
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, RAW_MESSAGES, Lake, Table
from sealane.pipeline.secrets.lake_keys import LakeKeys

BODIES: dict[Table, str] = {RAW_MESSAGES: "payload", CLEAN_MESSAGES: "body"}
"""The tables with bodies, and the column that has them."""
SEALED_BY = "sealed_by"


def reseal(lake: Lake, keys: LakeKeys, *, dry_run: bool = False, told: Told | None = None) -> BulkReport:
    """Seal all bodies by the newest key. Of files that need nothing only one small column is read.

    It may be stopped at any time and run again; once it has come to its end, another run finds nothing. Raises
    `KeyUnavailable` or `CorruptData` for a body that does not open: its file stays as it is, those before it are done.
    """
    report = BulkReport()
    files = all_files(lake, BODIES)
    for done, (table, path) in enumerate(files, 1):
        if not sealing_keys(path) <= {keys.newest}:
            column = BODIES[table]

            def change(batch: pa.RecordBatch, domain: str, column: str = column) -> Changed:
                return _resealed(batch, domain, column, keys)

            rewrite(lake, table, path, change, report, dry_run=dry_run)
        if told is not None:
            told(done, len(files))
    return report


def count_sealed(lake: Lake) -> tuple[int, int]:
    """How many bodies are sealed by the lake's keys, and in how many files."""
    counts = [_sealed_rows(path) for _, path in all_files(lake, BODIES)]
    return sum(counts), len(counts)


def drop_unneeded(lake: Lake, keys: LakeKeys) -> list[int]:
    """Give up the older keys if nothing in the lake is sealed by them, and return which; else none.

    Have the lake meanwhile: a step that is under way seals by the key that it began with.
    """
    needed = {number for _, path in all_files(lake, BODIES) for number in sealing_keys(path)}
    return keys.drop_older() if needed <= {keys.newest} else []


def sealing_keys(path: Path) -> set[int]:
    """By which keys bodies of a file are sealed."""
    return {number for number in _numbers(path).unique().to_pylist() if number is not None}


def _sealed_rows(path: Path) -> int:
    numbers = _numbers(path)
    return len(numbers) - numbers.null_count


def _numbers(path: Path) -> pa.ChunkedArray:
    with pq.ParquetFile(path) as file:
        if file.schema_arrow.get_field_index(SEALED_BY) < 0:
            return pa.chunked_array([], pa.int32())
        return file.read([SEALED_BY])[SEALED_BY]


def _resealed(batch: pa.RecordBatch, domain: str, column: str, keys: LakeKeys) -> Changed:
    old = pc.fill_null(pc.not_equal(batch[SEALED_BY], keys.newest), False)
    found = pc.sum(old).as_py() or 0
    if not found:
        return Changed(batch, 0)
    domains = pa.repeat(pa.scalar(domain), len(batch))
    nothing = pa.scalar(None, pa.binary())
    opened = keys.open_column(domains, batch["id"], pc.if_else(old, batch[column], nothing))
    sealed = pc.coalesce(keys.seal_column(domains, batch["id"], opened), batch[column].cast(pa.binary()))
    numbers = pc.if_else(old, pa.scalar(keys.newest, pa.int32()), batch[SEALED_BY])
    return Changed(with_column(with_column(batch, column, sealed), SEALED_BY, numbers), found)
