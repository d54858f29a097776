"""Forgetting somebody in the tables of single topics: rows stay, without key and values.

A row tells by itself if its key or one of its values is a number's hash. It does not if a header of its message said
so, or a field that has no column; the clean table tells that. And the clean table does not tell what is in Avro,
Protobuf and Arrow, whose columns do. So each is asked before the other is changed: see
`sealane.pipeline.bulk.forgetting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sealane.message.arrow_compute import pc
from sealane.pipeline.bulk.rewriting import BulkReport, Changed, domain_of, rewrite, with_column
from sealane.pipeline.lake.tables import Lake, Table
from sealane.pipeline.typed.columns import MESSAGE_COLUMNS, ROW
from sealane.pipeline.typed.files import topic_of

Ids = Mapping[str, frozenset[bytes]]
"""Of messages, by the full names of their topics."""

_KEPT = frozenset(field.name for field in (*MESSAGE_COLUMNS, ROW)) - {"key"}


class Subject:
    """Somebody, as the rows of a domain have them."""

    def __init__(self, keys: frozenset[bytes], text: str | None = None) -> None:
        """Whose messages have one of these keys, or this text as a value."""
        self._keys = pa.array(sorted(keys), pa.binary())
        self._text = text

    def rows(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows are about them."""
        found: npt.NDArray[np.bool_] = np.asarray(pc.is_in(batch["key"].cast(pa.binary()), self._keys))
        if self._text is not None:
            for name in batch.schema.names:
                found = found | _has_text(batch[name], self._text)
        return found


def _has_text(values: pa.Array, text: str) -> npt.NDArray[np.bool_]:
    """Which values are this text, or have it anywhere within."""
    type = values.type
    if pa.types.is_string(type):
        return np.asarray(pc.fill_null(pc.equal(values, text), False))
    if pa.types.is_binary(type):
        return np.asarray(pc.fill_null(pc.equal(values, text.encode()), False))
    if pa.types.is_struct(type):
        parts = [_has_text(part, text) for part in values.flatten()]
        return np.logical_or.reduce(parts) if parts else np.zeros(len(values), bool)
    if pa.types.is_map(type):
        keys, items = values.keys, values.items
        return _any_of(values, _has_text(keys, text) | _has_text(items, text))
    if pa.types.is_list(type):
        return _any_of(values, _has_text(values.values, text))
    return np.zeros(len(values), bool)


def _any_of(values: pa.Array, within: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    before = np.concatenate(([0], np.cumsum(within)))[np.asarray(values.offsets)]
    return np.asarray(values.is_valid()) & (before[1:] > before[:-1])


class TypedTables:
    """Those of a domain, or all of them."""

    def __init__(self, lake: Lake, domain: str | None = None) -> None:
        self._lake = lake
        self._files = [
            (table, path)
            for table in lake.typed_tables()
            for path in lake.files(table)
            if domain in (None, domain_of(path))
        ]

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic_of(path) for _, path in self._files)

    def about(self, subject_in: Callable[[str], Subject]) -> Ids:
        """The messages whose rows tell by themselves that they are about somebody, who is asked for by domain."""
        found: dict[str, set[bytes]] = {}
        for path, batch in self._batches():
            rows = subject_in(domain_of(path)).rows(batch)
            if rows.any():
                found.setdefault(topic_of(path), set()).update(batch["id"].filter(pa.array(rows)).to_pylist())
        return {topic: frozenset(ids) for topic, ids in found.items()}

    def _batches(self) -> Iterator[tuple[Path, pa.RecordBatch]]:
        for _, path in self._files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    yield path, batch

    def forget(self, ids: Ids, report: BulkReport, *, dry_run: bool) -> None:
        """Take key and values of these messages away."""
        for table, path in self._files:
            wanted = ids.get(topic_of(path))
            if wanted:
                self._forget_in(table, path, pa.array(sorted(wanted), pa.binary()), report, dry_run=dry_run)

    def _forget_in(self, table: Table, path: Path, ids: pa.Array, report: BulkReport, *, dry_run: bool) -> None:
        def change(batch: pa.RecordBatch, domain: str) -> Changed:
            names = [name for name in batch.schema.names if name not in _KEPT]
            rows = np.asarray(pc.is_in(batch["id"].cast(pa.binary()), ids))
            # What was forgotten before is not found again.
            rows &= np.logical_or.reduce([np.asarray(batch[name].is_valid()) for name in names])
            if rows.any():
                kept = pa.array(np.arange(len(batch)), mask=rows)
                for name in names:
                    batch = with_column(batch, name, batch[name].take(kept))
            return Changed(batch, int(rows.sum()))

        rewrite(self._lake, table, path, change, report, dry_run=dry_run)
