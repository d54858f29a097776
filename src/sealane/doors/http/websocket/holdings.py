"""What a consumer was handed and has not answered for yet: found by its delivery, a message's id, or its lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from pyroaring import BitMap64

from sealane.doors.http.websocket.formats import Frame

Leased = tuple[int, int, BitMap64]
"""Partition, lease, offsets."""


class Handed:
    """One delivery as the client has it: messages of one lease."""

    __slots__ = ("ids", "lease", "number", "partition")

    def __init__(self, number: int, partition: int, lease: int, frame: Frame) -> None:
        self.number = number
        self.partition = partition
        self.lease = lease
        self.ids = dict(zip(frame.offsets, frame.ids, strict=True))
        """By offset: those that are unanswered."""


Found = dict[Handed, list[int]]
"""Deliveries, with the offsets that are meant of each."""


class Holdings:
    """Of one consumer."""

    __slots__ = ("_by_id", "_by_lease", "_by_number", "_messages")

    def __init__(self) -> None:
        self._by_number: dict[int, Handed] = {}
        self._by_id: dict[bytes, tuple[Handed, int]] = {}
        """With the offset. Of two messages with one id it is the one that was handed last."""
        self._by_lease: dict[tuple[int, int], dict[int, Handed]] = {}
        self._messages = 0

    def __len__(self) -> int:
        """Messages."""
        return self._messages

    def add(self, handed: Handed) -> None:
        self._by_number[handed.number] = handed
        self._by_lease.setdefault((handed.partition, handed.lease), {})[handed.number] = handed
        for offset, identity in handed.ids.items():
            self._by_id[identity] = handed, offset
        self._messages += len(handed.ids)

    def find(self, delivery: int | None, ids: Iterable[UUID] | None) -> Found:
        """The messages that are meant. Raises `KeyError` with what is not held."""
        if delivery is not None:
            handed = self._by_number[delivery]
            return {handed: list(handed.ids)}
        found: Found = {}
        for each in dict.fromkeys(ids or ()):
            if each.bytes not in self._by_id:
                raise KeyError(each)
            handed, offset = self._by_id[each.bytes]
            found.setdefault(handed, []).append(offset)
        return found

    def take(self, found: Found) -> list[Leased]:
        """They are answered for: what they were, by lease."""
        taken: dict[tuple[int, int], BitMap64] = {}
        for handed, offsets in found.items():
            taken.setdefault((handed.partition, handed.lease), BitMap64()).update(offsets)
            self._forget(handed, offsets)
        return [(partition, lease, offsets) for (partition, lease), offsets in taken.items()]

    def take_all(self) -> list[Leased]:
        return self.take({handed: list(handed.ids) for handed in self._by_number.values()})

    def revoke(self, partition: int, lease: int, offsets: BitMap64) -> list[bytes]:
        """These are the consumer's no more. Returns the ids of those that it had."""
        revoked: list[bytes] = []
        for handed in list(self._by_lease.get((partition, lease), {}).values()):
            held = [offset for offset in handed.ids if offset in offsets]
            revoked += [handed.ids[offset] for offset in held]
            self._forget(handed, held)
        return revoked

    def tidy(self, holds: Callable[[int, int], bool]) -> None:
        """Forget what was under leases that have ended without a word, such as messages past retention."""
        for (partition, lease), under in list(self._by_lease.items()):
            if not holds(partition, lease):
                for handed in list(under.values()):
                    self._forget(handed, list(handed.ids))

    def _forget(self, handed: Handed, offsets: Iterable[int]) -> None:
        for offset in offsets:
            identity = handed.ids.pop(offset)
            self._messages -= 1
            if self._by_id.get(identity) == (handed, offset):
                del self._by_id[identity]
        if not handed.ids:
            del self._by_number[handed.number]
            under = self._by_lease[handed.partition, handed.lease]
            del under[handed.number]
            if not under:
                del self._by_lease[handed.partition, handed.lease]
