"""Small parts of a delivery become one: a consumer that lags behind single publishes gets tables, not a row each.

Encoding a batch, and checking it at the other end, costs about the same whether it has one message or a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from sealane.message import Batch
from sealane.message.concat import concat
from sealane.node.deliveries import Part

WORTH_MERGING = 3
"""Two parts are sent as they are: putting them together costs as much here as it saves at the other end."""
SMALL_BYTES = 64 << 10
"""Parts up to this size are copied together; larger ones are cheaper to send as they are."""
MERGED_MESSAGES_MAX = 10_000
"""Messages of one merged part."""


def merged(parts: Sequence[Part]) -> list[Part]:
    """The same messages in the same order, in fewer parts."""
    if len(parts) < WORTH_MERGING:
        return list(parts)
    found: list[Part] = []
    group: list[Part] = []
    messages = 0
    for part in parts:
        fits = bool(group) and messages + len(part.batch) <= MERGED_MESSAGES_MAX and _alike(group[0].batch, part.batch)
        if group and not (fits and part.batch.nbytes <= SMALL_BYTES):
            found += _joined(group)
            group, messages = [], 0
        group.append(part)
        messages += len(part.batch)
        if part.batch.nbytes > SMALL_BYTES:
            found += _joined(group)
            group, messages = [], 0
    if group:
        found += _joined(group)
    return found


def _alike(one: Batch, other: Batch) -> bool:
    """Whether a consumer could not tell them apart by what is true of the whole batch."""
    first, second = one.meta, other.meta
    if first is second:
        return True
    return (first.given_ids, first.schema_id, first.trace, first.envelope) == (
        second.given_ids,
        second.schema_id,
        second.trace,
        second.envelope,
    )


def _joined(group: list[Part]) -> list[Part]:
    if len(group) < WORTH_MERGING:
        return group
    # Which producer sent what is the node's business, and no longer true of the whole.
    meta = msgspec.structs.replace(group[0].batch.meta, producer=None, sequence=None, only=None)
    batch = concat([part.batch for part in group], meta=meta)
    return [Part(_joined_offsets([part.offsets for part in group]), batch)]


def _joined_offsets(offsets: Sequence[range | np.ndarray]) -> range | np.ndarray:
    first, last = int(offsets[0][0]), int(offsets[-1][-1])
    if last - first + 1 == sum(map(len, offsets)):
        return range(first, last + 1)
    return np.concatenate([np.asarray(each, dtype=np.uint64) for each in offsets])
