"""Receipts of a publish: where each message is, made into objects only when looked at."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, overload

import numpy as np
import pyarrow as pa

from sealane.message import Batch
from sealane.message.schema import ID


class Receipt:
    """Where a message is stored. Exists only once it is durable there."""

    __slots__ = ("_id", "offset", "partition")

    def __init__(self, identity: bytes, partition: int, offset: int) -> None:
        self._id = identity
        self.partition = partition
        self.offset = offset

    @property
    def id(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Receipt):
            return NotImplemented
        return (self._id, self.partition, self.offset) == (other._id, other.partition, other.offset)

    def __hash__(self) -> int:
        return hash((self._id, self.partition, self.offset))

    def __repr__(self) -> str:
        return f"Receipt(id={self.id}, partition={self.partition}, offset={self.offset})"


class Share(NamedTuple):
    """The rows of a batch (None: all of them) that went to a partition, and their offsets there."""

    partition: int
    rows: np.ndarray | None
    offsets: range | list[int]


class Receipts(Sequence[Receipt]):
    """One receipt for each message, in the order in which they were given."""

    __slots__ = ("_batch", "_shares")

    def __init__(self, batch: Batch, shares: Sequence[Share]) -> None:
        self._batch = batch
        self._shares = shares

    @property
    def shares(self) -> Sequence[Share]:
        """What went where, a partition at a time."""
        return self._shares

    @property
    def ids(self) -> pa.Array:
        """The messages' ids, as Arrow has them."""
        return self._batch.column(ID)

    def __len__(self) -> int:
        return len(self._batch)

    @overload
    def __getitem__(self, index: int) -> Receipt: ...
    @overload
    def __getitem__(self, index: slice) -> list[Receipt]: ...
    def __getitem__(self, index: int | slice) -> Receipt | list[Receipt]:
        if isinstance(index, slice):
            return list(self)[index]
        if len(self._batch) == 1 and index in (0, -1):
            return self._only()
        row = range(len(self))[index]
        for share in self._shares:
            place = row if share.rows is None else int(np.searchsorted(share.rows, row))
            if share.rows is None or (place < len(share.rows) and share.rows[place] == row):
                identity = self._batch.records.column("id")[row].as_py()
                return Receipt(identity, share.partition, share.offsets[place])
        raise IndexError(index)

    def _only(self) -> Receipt:
        """Of one message, whose batch nobody has opened and need not for this."""
        [identity], [share] = self._batch.ids(), self._shares
        return Receipt(identity, share.partition, share.offsets[0])

    def __iter__(self) -> Iterator[Receipt]:
        return (Receipt(*place) for place in self.places())

    def places(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[bytes, int, int]]:
        """The id, the partition and the offset of each from `start` to before `stop`, without an object for it."""
        ids = self._batch.ids(start, stop)
        if len(self._shares) == 1 and self._shares[0].rows is None:
            partition, _, offsets = self._shares[0]
            return zip(ids, repeat(partition, len(ids)), offsets[start:stop], strict=True)
        partitions, found = [0] * len(self), [0] * len(self)
        for share in self._shares:
            rows = range(len(self)) if share.rows is None else share.rows.tolist()
            for row, offset in zip(rows, share.offsets, strict=True):
                partitions[row], found[row] = share.partition, offset
        return zip(ids, partitions[start:stop], found[start:stop], strict=True)

    def part(self, start: int, stop: int) -> Sequence[Receipt]:
        """Those from `start` to before `stop`, which are made into objects no sooner."""
        return _Part(self, range(start, stop))

    def __repr__(self) -> str:
        partitions = sorted({share.partition for share in self._shares})
        return f"<Receipts of {len(self):,} messages in partitions {partitions}>"


class _Part(Sequence[Receipt]):
    """The receipts of some messages that went together with others."""

    __slots__ = ("_rows", "_whole")

    def __init__(self, whole: Receipts, rows: range) -> None:
        self._whole = whole
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Receipt: ...
    @overload
    def __getitem__(self, index: slice) -> list[Receipt]: ...
    def __getitem__(self, index: int | slice) -> Receipt | list[Receipt]:
        if isinstance(index, slice):
            return list(self)[index]
        return self._whole[self._rows[index]]

    def __iter__(self) -> Iterator[Receipt]:
        return (Receipt(*place) for place in self._whole.places(self._rows.start, self._rows.stop))

    def __repr__(self) -> str:
        return f"<{len(self):,} of {self._whole!r}>"
