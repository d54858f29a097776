"""Several batches as one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from sealane.message.batch import Batch
from sealane.message.plain import join_plain


def concat(batches: Sequence[Batch]) -> Batch:
    """The messages of all batches in one, under the first one's metadata.

    If any of them has ids that were given, all ids count as given: they enter the id window, which harms nothing.
    """
    first, *others = batches
    if not others:
        return first
    given_ids = any(batch.meta.given_ids for batch in batches)
    meta = msgspec.structs.replace(first.meta, given_ids=given_ids)
    plain = [(batch.unopened(), batch.layout) for batch in batches if batch.layout is not None]
    if len(plain) == len(batches):
        encoded, layout = join_plain(plain)
        return Batch.unread(pa.py_buffer(encoded), meta, layout)
    if all(batch.absent == first.absent for batch in others):
        return Batch.of_kept(pa.concat_batches([batch.kept for batch in batches]), meta, first.absent, exact=True)
    return Batch(pa.concat_batches([batch.records for batch in batches]), meta)
