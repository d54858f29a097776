"""Idempotent producers: a batch that is sent again is recognised by its producer and sequence, and stored once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sealane.errors import StaleSequence

REMEMBERED_BATCHES = 64
"""A producer may have this many unconfirmed batches on a partition and still get the true receipts on a resend."""
PRODUCERS_MAX = 10_000
"""The least recently heard producers of a partition are forgotten beyond this; they would need new ids after that."""


@dataclass(slots=True)
class _Producer:
    next_sequence: int
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))
    """(sequence, base offset, count)."""


class Producers:
    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[bytes, _Producer] = {}

    def repeated(self, producer: bytes, sequence: int) -> tuple[int, int] | None:
        """The (base, count) of a batch that is stored already, None for a new one.

        A producer's batches may go to several partitions, so sequences may jump forwards here; one that is older than
        what is remembered raises `StaleSequence`.
        """
        known = self._by_id.get(producer)
        if known is None or sequence >= known.next_sequence:
            return None
        for seen, base, count in known.recent:
            if seen == sequence:
                return base, count
        raise StaleSequence(known.next_sequence, sequence)

    def remember(self, producer: bytes, sequence: int, base: int, count: int) -> None:
        known = self._by_id.pop(producer, None)
        if known is None:
            known = _Producer(sequence)
            if len(self._by_id) >= PRODUCERS_MAX:
                del self._by_id[next(iter(self._by_id))]
        known.next_sequence = sequence + 1
        known.recent.append((sequence, base, count))
        self._by_id[producer] = known

    def dump(self) -> list[tuple[bytes, int, list[tuple[int, int, int]]]]:
        return [(producer, known.next_sequence, list(known.recent)) for producer, known in self._by_id.items()]

    def load(self, dumped: list[tuple[bytes, int, list[tuple[int, int, int]]]]) -> None:
        self._by_id = {
            producer: _Producer(next_sequence, deque(recent, maxlen=REMEMBERED_BATCHES))
            for producer, next_sequence, recent in dumped
        }
