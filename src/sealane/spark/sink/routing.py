"""Rows that say themselves which topic they go to: put in order by topic, without a look at any one of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc

GATHER_BYTES = 8 << 20
"""Rows of about so many bytes are gathered before they are split, so that topics get batches worth sending."""


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= GATHER_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def qualified(domains: pa.Array, topics: pa.Array) -> pa.Array:
    """`domain/topic` of each row; the bare topic where there is no domain, null where there is no topic."""
    return pc.coalesce(pc.binary_join_element_wise(domains, topics, "/"), topics)


def by_topic(topics: pa.Array, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each topic, in their order."""
    if not len(topics):
        return
    encoded = topics.dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], rows
        return
    numbers = encoded.indices.to_numpy()
    ordered = rows.take(pa.array(np.argsort(numbers, kind="stable")))
    ends = np.cumsum(np.bincount(numbers, minlength=len(names))).tolist()
    start = 0
    for name, end in zip(names, ends, strict=True):
        yield name, ordered.slice(start, end - start)
        start = end
