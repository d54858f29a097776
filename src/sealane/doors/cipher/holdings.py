"""What a consumer was handed and has not acknowledged: found by the message's id, or by its lease."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from pyroaring import BitMap64

Leased = tuple[int, int, BitMap64]
"""Partition, lease, offsets."""


class Place(NamedTuple):
    """Where a message is, and under which lease it was handed over."""

    partition: int
    lease: int
    offset: int


class Holdings:
    """Of one consumer."""

    __slots__ = ("_by_id", "_by_lease", "_messages")

    def __init__(self) -> None:
        self._by_id: dict[str, list[Place]] = {}
        """Several where a message was published more than once."""
        self._by_lease: dict[tuple[int, int], dict[int, str]] = {}
        self._messages = 0

    def __len__(self) -> int:
        """Messages."""
        return self._messages

    def add(self, message_id: str, place: Place) -> None:
        self._by_id.setdefault(message_id, []).append(place)
        self._by_lease.setdefault((place.partition, place.lease), {})[place.offset] = message_id
        self._messages += 1

    def places(self, message_id: str) -> list[Place]:
        """Where the messages with this id are; none if there are none."""
        return list(self._by_id.get(message_id, ()))

    def message_ids(self, besides: Collection[Place] = ()) -> list[str]:
        """Of all messages, but for those at these places."""
        return [message_id for message_id, places in self._by_id.items() for place in places if place not in besides]

    def forget(self, place: Place) -> bool:
        """It is held no more. Whether it was."""
        under = self._by_lease.get((place.partition, place.lease), {})
        message_id = under.pop(place.offset, None)
        if message_id is None:
            return False
        if not under:
            del self._by_lease[place.partition, place.lease]
        places = self._by_id[message_id]
        places.remove(place)
        if not places:
            del self._by_id[message_id]
        self._messages -= 1
        return True

    def revoke(self, partition: int, lease: int, offsets: BitMap64) -> list[str]:
        """These are the consumer's no more. Returns the ids of those that it had."""
        under = self._by_lease.get((partition, lease), {})
        held = [(offset, message_id) for offset, message_id in under.items() if offset in offsets]
        for offset, _ in held:
            self.forget(Place(partition, lease, offset))
        return [message_id for _, message_id in held]

    def tidy(self, holds: Callable[[int, int], bool]) -> int:
        """Forget what was under leases that have ended without a word, such as messages that had to make room.
        Returns how many they were.
        """
        before = self._messages
        for (partition, lease), under in list(self._by_lease.items()):
            if not holds(partition, lease):
                for offset in list(under):
                    self.forget(Place(partition, lease, offset))
        return before - self._messages

    def take_all(self) -> list[Leased]:
        """Everything, by lease; nothing is held after it."""
        taken = [(partition, lease, BitMap64(under)) for (partition, lease), under in self._by_lease.items()]
        self._by_id.clear()
        self._by_lease.clear()
        self._messages = 0
        return taken
