"""Messages as Spark has them: thirteen columns of exactly the Arrow types that it takes, made without copies.

Spark knows no fixed-size binary, and wants every column to be nullable. What all messages of a batch share (where they
are, who has published them) is a column too: those are slices of arrays that are made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from sealane.engine import Stored
from sealane.message import Batch
from sealane.message.batch import DEFAULT_META
from sealane.message.concat import concat
from sealane.message.names import split_topic
from sealane.message.schema import CREATED, DELIVER_AT, EXPIRES, HEADERS, HEADERS_TYPE, ID, KEY, PRIORITY, TIME_TYPE
from sealane.message.schema import PAYLOAD as PAYLOAD

BINARY = pa.binary()
TEXT = pa.utf8()

MESSAGE_SCHEMA = pa.schema(
    [
        ("id", BINARY),
        ("key", BINARY),
        ("payload", BINARY),
        ("headers", HEADERS_TYPE),
        ("priority", pa.int8()),
        ("created", TIME_TYPE),
        ("expires", TIME_TYPE),
        ("deliver_at", TIME_TYPE),
        ("producer", BINARY),
        ("domain", TEXT),
        ("topic", TEXT),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
"""What a source without a value schema yields."""

_ID_BYTES = 16
_GROWN_MIN = 8_192
_CONSTANTS_CACHED = 256


class Constant:
    """A column with one value throughout, of any length, as a slice of one array."""

    def __init__(self, value: object, type: pa.DataType) -> None:
        self._scalar = pa.scalar(value, type)
        self._grown = pa.repeat(self._scalar, 0)

    def column(self, rows: int) -> pa.Array:
        if len(self._grown) < rows:
            # The next power of two: it is made a few times in a process's life, not at every new length.
            self._grown = pa.repeat(self._scalar, max(_GROWN_MIN, 1 << (rows - 1).bit_length()))
        return self._grown.slice(0, rows)


@lru_cache(maxsize=_CONSTANTS_CACHED)
def constant(value: object, type: pa.DataType) -> Constant:
    """The same for the same value: a worker's next task goes on with what it has."""
    return Constant(value, type)


class Origin:
    """A partition, as three columns of its messages say it."""

    def __init__(self, topic: str, partition: int) -> None:
        """`topic` is its full name."""
        domain, name = split_topic(topic)
        self._domain = constant(domain, TEXT)
        self._topic = constant(name, TEXT)
        self._partition = constant(partition, pa.int32())

    def columns(self, rows: int) -> list[pa.Array]:
        return [self._domain.column(rows), self._topic.column(rows), self._partition.column(rows)]


def message_columns(stored: Sequence[Stored], origin: Origin) -> list[pa.Array]:
    """The columns of `MESSAGE_SCHEMA` for these batches, one after the other, at least one. One alone is not copied."""
    batch = _joined(stored)
    rows = len(batch)
    return [
        _ids(batch),
        *(batch.column(place) for place in (KEY, PAYLOAD, HEADERS, PRIORITY, CREATED, EXPIRES, DELIVER_AT)),
        _producers(stored, rows),
        *origin.columns(rows),
        _offsets(stored, rows),
    ]


def _joined(stored: Sequence[Stored]) -> Batch:
    if len(stored) == 1:
        return stored[0].batch
    # Envelopes are no column here: without them, plain batches are put together as bytes.
    bare = [batch if batch.meta.envelope is None else batch.with_meta(DEFAULT_META) for _, batch in stored]
    return concat(bare, meta=DEFAULT_META)


def _ids(batch: Batch) -> pa.Array:
    """Identifiers of a fixed size become values of any size by saying where each of them begins."""
    ids = batch.column(ID)
    rows = len(ids)
    data = ids.buffers()[1].slice(ids.offset * _ID_BYTES, rows * _ID_BYTES)
    return pa.Array.from_buffers(BINARY, rows, [None, _id_starts(rows), data], 0)


@lru_cache(maxsize=_CONSTANTS_CACHED)
def _id_starts(rows: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(0, (rows + 1) * _ID_BYTES, _ID_BYTES, dtype=np.int32))


def _producers(stored: Sequence[Stored], rows: int) -> pa.Array:
    producers = [batch.meta.producer for _, batch in stored]
    if producers.count(producers[0]) == len(producers):
        return constant(producers[0], BINARY).column(rows)
    lengths = [len(batch) for _, batch in stored]
    return pa.array(producers, BINARY).take(pa.array(np.repeat(np.arange(len(stored)), lengths)))


def _offsets(stored: Sequence[Stored], rows: int) -> pa.Array:
    first = stored[0].base
    if stored[-1].stop - first == rows:
        return pa.array(np.arange(first, first + rows, dtype=np.int64))
    # Something between them is gone.
    return pa.array(np.concatenate([np.arange(some.base, some.stop, dtype=np.int64) for some in stored]))
