"""From positions to tasks: each reads one range of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from sealane.spark.source.planning.offsets import Positions, count
from sealane.spark.source.rows.fetching import Range

SPLIT_MESSAGES = 500_000
"""Messages that one task reads, at most: under a second's work, so that all cores have some of a long log and none is
left with much of it at the end."""


def splits(
    start: Positions, end: Positions, min_partitions: int | None = None, *, split_messages: int = SPLIT_MESSAGES
) -> list[Range]:
    """Ranges that take in every message between the positions once, each of at most `split_messages`.

    There is one for each partition that has something, and more where it is needed: for long ones, and until there are
    `min_partitions`, if there are so many messages.
    """
    total = count(start, end)
    return [
        piece
        for topic, at in sorted(end.items())
        if topic in start
        for partition, stop in sorted(at.offsets.items())
        for piece in _cut(
            Range(topic, at.incarnation, partition, start[topic].offsets.get(partition, stop), stop),
            lambda length: max(-(-length * (min_partitions or 1) // total), -(-length // split_messages)),
        )
    ]


def _cut(whole: Range, pieces_of: Callable[[int], int]) -> Iterator[Range]:
    """In pieces of about the same length; none of nothing. Their number is rounded up by `pieces_of`, so that all
    together are no fewer than were asked for.
    """
    length = whole.stop - whole.start
    if length <= 0:
        return
    pieces = min(length, pieces_of(length))
    cuts = [whole.start + length * piece // pieces for piece in range(pieces + 1)]
    for start, stop in pairwise(cuts):
        yield Range(whole.topic, whole.incarnation, whole.partition, start, stop)
