"""Where a reader of a whole topic is: a short text that the reader keeps, and shows when it comes again.

`0:42,1:17` says that everything below offset 42 of partition 0 was read, and below 17 of partition 1. Messages that
are delayed are passed over, and named until they come: `0:42-38-40..41` is without 38, 40 and 41. `@5f2c` at the end
says of which topic: one that is deleted and made again under the same name has other messages at the same offsets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sealane.errors import InvalidArgument

FOLLOWED_PARTITIONS_MAX = 512
"""Partitions of a topic that is followed: the position names each of them, and must fit the head of a request."""
DELAYED_RUNS_MAX = 64
"""Runs of delayed messages that a position leaves out; a reader that meets one more waits for the first of them."""
POSITION_CHARS_MAX = 12_000
"""A position comes back from outside: as many partitions and runs fit, whatever their numbers."""

_PLACE = re.compile(r"(?P<partition>\d{1,4}):(?P<next>\d{1,18})(?P<later>(?:-\d{1,18}(?:\.\.\d{1,18})?)*)", re.ASCII)
_INCARNATION = re.compile(r"[0-9a-f]{1,8}")

Run = tuple[int, int]
"""First offset, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Place:
    """In one partition: all below `next` was read, but for the runs that come later."""

    next: int
    later: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """By partition; one that is missing is new to the reader."""

    places: Mapping[int, Place]
    incarnation: int | None = None
    """None: whichever topic has the name now."""

    @classmethod
    def read(cls, text: str) -> Position:
        """Raises `InvalidArgument` for what is no position."""
        if len(text) > POSITION_CHARS_MAX:
            raise InvalidArgument("position", f"it has {len(text):,} characters, the limit is {POSITION_CHARS_MAX:,}")
        listed, at, incarnation = text.partition("@")
        if at and not _INCARNATION.fullmatch(incarnation):
            raise _refusal(text)
        places: dict[int, Place] = {}
        for each in listed.split(","):
            found = _PLACE.fullmatch(each.strip())
            if found is None or int(found["partition"]) in places:
                raise _refusal(text)
            places[int(found["partition"])] = Place(int(found["next"]), _runs(found["later"], int(found["next"]), text))
        if sum(len(place.later) for place in places.values()) > DELAYED_RUNS_MAX:
            raise _refusal(text)
        return cls(places, int(incarnation, 16) if at else None)

    def text(self) -> str:
        listed = ",".join(place_text(partition, *_of(place)) for partition, place in sorted(self.places.items()))
        return listed + incarnation_text(self.incarnation)


def place_text(partition: int, next_offset: int, later: Sequence[Run] = ()) -> str:
    text = f"{partition}:{next_offset}"
    for first, stop in later:
        text += f"-{first}" if stop == first + 1 else f"-{first}..{stop - 1}"
    return text


def incarnation_text(incarnation: int | None) -> str:
    return "" if incarnation is None else f"@{incarnation:x}"


def _of(place: Place) -> tuple[int, tuple[Run, ...]]:
    return place.next, place.later


def _runs(text: str, next_offset: int, whole: str) -> tuple[Run, ...]:
    """In their order, and none of them touches another."""
    runs = []
    floor = 0
    for each in text.split("-")[1:]:
        first, _, last = each.partition("..")
        run = int(first), int(last or first) + 1
        if not floor <= run[0] < run[1] <= next_offset:
            raise _refusal(whole)
        runs.append(run)
        floor = run[1] + 1
    return tuple(runs)


def _refusal(text: str) -> InvalidArgument:
    return InvalidArgument("position", f"{text[:64]!r} is not one that events have, such as 0:42,1:17")
