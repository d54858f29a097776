"""Which messages a file has."""

from __future__ import annotations

from collections.abc import Iterable

RECENT_IDS_MAX = 1_000_000
"""Ids that a receiver remembers, about 150 bytes each. A broker repeats what was not acknowledged within seconds; a
sender that repeats a message after a million others is beyond what one receiver can notice."""


class RecentIds:
    """The last so many, in the order in which they came."""

    def __init__(self, ids_max: int = RECENT_IDS_MAX) -> None:
        self._ids: dict[str, None] = {}
        self._ids_max = ids_max

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            self._ids[message_id] = None
            if len(self._ids) > self._ids_max:
                del self._ids[next(iter(self._ids))]
