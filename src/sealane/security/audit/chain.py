"""Whether an audit log is as it was written: which entries were changed, removed, inserted or moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from sealane.security.audit.entries import Entry

AUDIT_CUT = "audit.cut"
"""The event by which a node writes down, at its start, that the end of its audit log was gone."""


class Anchor(msgspec.Struct, frozen=True):
    """The first entry that is kept: those before it were let go when their time was over."""

    number: int
    previous: str


class Head(msgspec.Struct, frozen=True):
    """The last entry at some moment: the log may have more by now, never fewer."""

    number: int
    hash: str


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it was written."""

    kind: Literal["changed", "removed", "inserted", "reordered"]
    number: int
    """The entry; of several that were removed the first."""
    text: str


class _Link(NamedTuple):
    """What the chain is made of."""

    number: int
    previous: str
    hash: str
    is_sound: bool
    """Its hash is that of what it says."""


@dataclass(slots=True)
class Chain:
    """Entries in the order in which they were found; `findings` tells what is wrong with them."""

    links: list[_Link]
    noted: list[Finding]
    """What was found in passing."""
    unreadable: set[int]

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.links = []
        self.noted = []
        self.unreadable = set()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        is_sound = entry.hash == entry.computed_hash()
        self.links.append(_Link(entry.number, entry.previous, entry.hash, is_sound))
        if entry.event == AUDIT_CUT and is_sound:
            first, last = entry.details.get("first", "?"), entry.details.get("last", "?")
            text = f"entries {first} to {last} were gone when the node started, as entry {entry.number} tells"
            self.noted.append(Finding("removed", entry.number, text))

    def add_unreadable(self, number: int, text: str) -> None:
        """Where this entry should be stands something else."""
        self.noted.append(Finding("changed", number, text))
        self.unreadable.add(number)

    def findings(self, anchor: Anchor | None = None, head: Head | None = None) -> list[Finding]:
        """Empty if nothing is wrong.

        Without an `anchor` the log may begin anywhere, without a `head` it may end anywhere.
        """
        genuine, inserted = self._told_apart()
        found = [
            *self.noted,
            *inserted,
            *self._changed(genuine, anchor, head),
            *_reordered([link.number for link in genuine]),
            *_removed(sorted({link.number for link in genuine} | self.unreadable), anchor, head),
        ]
        return sorted(found, key=lambda finding: (finding.number, finding.kind))

    def _followed(self) -> dict[int, str]:
        """By number: the hash of the entry with that number, according to the one that follows it."""
        return {link.number - 1: link.previous for link in self.links if link.is_sound}

    def _told_apart(self) -> tuple[list[_Link], list[Finding]]:
        """One entry for each number, and the others: the one that its successor follows is the one that was written."""
        followed = self._followed()
        chosen: dict[int, int] = {}
        for place, link in enumerate(self.links):
            if link.number not in chosen or (
                link.hash == followed.get(link.number) != self.links[chosen[link.number]].hash
            ):
                chosen[link.number] = place
        if len(chosen) == len(self.links):
            return self.links, []
        kept = set(chosen.values())
        inserted = [
            Finding("inserted", link.number, f"an entry {link.number} too many stands in place {place} of the log")
            for place, link in enumerate(self.links)
            if place not in kept
        ]
        return [self.links[place] for place in sorted(kept)], inserted

    def _changed(self, genuine: Sequence[_Link], anchor: Anchor | None, head: Head | None) -> Iterator[Finding]:
        followed = self._followed()
        if head is not None:
            followed.setdefault(head.number, head.hash)
        for link in genuine:
            number = link.number
            if not link.is_sound:
                yield Finding("changed", number, f"entry {number} was changed: its hash is not that of what it says")
            elif followed.get(number, link.hash) != link.hash:
                text = f"entry {number} was changed, and its hash with it: it is not the one that was written"
                yield Finding("changed", number, text)
            elif anchor is not None and number == anchor.number and link.previous != anchor.previous:
                text = f"entry {number} was changed: it does not follow the last one that retention let go"
                yield Finding("changed", number, text)


def _reordered(numbers: Sequence[int]) -> Iterator[Finding]:
    """The fewest entries that must have been moved for the others to be in their order."""
    if all(earlier < later for earlier, later in pairwise(numbers)):
        return
    in_order = set(_longest_ascent(numbers))
    highest = -1
    for number in numbers:
        if number in in_order:
            highest = number
        else:
            where = f"after entry {highest}" if highest >= 0 else "before all others"
            yield Finding("reordered", number, f"entry {number} was moved: it stands {where}")


def _longest_ascent(numbers: Sequence[int]) -> Iterator[int]:
    """As many of the numbers as ascend in the order in which they come."""
    ends: list[int] = []
    """At each length: the lowest number with which an ascent of that length can end."""
    places: list[int] = []
    before: list[int | None] = []
    for place, number in enumerate(numbers):
        length = bisect_left(ends, number)
        # A slice of one, or past the end of none: it is replaced, or added.
        ends[length : length + 1] = [number]
        places[length : length + 1] = [place]
        before.append(places[length - 1] if length else None)
    at: int | None = places[-1] if places else None
    while at is not None:
        yield numbers[at]
        at = before[at]


def _removed(numbers: Sequence[int], anchor: Anchor | None, head: Head | None) -> Iterator[Finding]:
    """Runs of numbers that should be there."""
    expected = numbers[0] if numbers else 0 if anchor is None else anchor.number
    if anchor is not None:
        expected = min(expected, anchor.number)
    for number in numbers:
        if number > expected:
            yield _missing(expected, number - 1)
        expected = number + 1
    if head is not None and head.number >= expected:
        yield _missing(expected, head.number)


def _missing(first: int, last: int) -> Finding:
    text = f"entry {first} was removed" if first == last else f"entries {first} to {last} were removed"
    return Finding("removed", first, text)


def verify(entries: Iterable[Entry], anchor: Anchor | None = None, head: Head | None = None) -> list[Finding]:
    """What is wrong with these entries; see `Chain.findings`."""
    return Chain(entries).findings(anchor, head)
