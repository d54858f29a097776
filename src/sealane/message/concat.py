"""Several batches as one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from sealane.message.batch import Batch, BatchMeta
from sealane.message.plain import join_plain


def concat(batches: Sequence[Batch], *, meta: BatchMeta | None = None) -> Batch:
    """The messages of all batches in one, under this metadata, or else under the first one's.

    Then, if any of them has ids that were given, all ids count as given: they enter the id window, which harms nothing.
    """
    first, *others = batches
    if meta is None:
        meta = _shared_meta(first.meta, others)
    if any(batch.meta.envelope != first.meta.envelope for batch in others):
        # Each message has its own from here on, in a column.
        meta = msgspec.structs.replace(meta, envelope=None)
        return Batch(pa.concat_batches([batch.records for batch in batches]), meta)
    if meta.envelope != first.meta.envelope:
        meta = msgspec.structs.replace(meta, envelope=first.meta.envelope)
    if not others:
        return first.with_meta(meta)
    plain = [(batch.unopened(), batch.layout) for batch in batches if batch.layout is not None]
    if len(plain) == len(batches):
        encoded, layout = join_plain(plain)
        return Batch.unread(pa.py_buffer(encoded), meta, layout)
    if all(batch.absent == first.absent for batch in others):
        return Batch.of_kept(pa.concat_batches([batch.kept for batch in batches]), meta, first.absent, exact=True)
    return Batch(pa.concat_batches([batch.records for batch in batches]), meta)


def _shared_meta(meta: BatchMeta, others: Sequence[Batch]) -> BatchMeta:
    if not meta.given_ids and any(batch.meta.given_ids for batch in others):
        return msgspec.structs.replace(meta, given_ids=True)
    return meta
