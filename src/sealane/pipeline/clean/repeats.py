"""Which messages come again, by runs of ids and not id by id.

A batch's generated ids count up, so what thousands of messages are known by is one run. Only where two runs have an id
in common are they taken apart. A name is 24 bytes: eight of a hash of the topic, and the id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

TOPIC_BYTES = 8
ID_BYTES = 16
NAME_BYTES = TOPIC_BYTES + ID_BYTES

Names = npt.NDArray[np.bytes_]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NAME = np.dtype(f"S{NAME_BYTES}")
RUN = np.dtype([("first", NAME), ("count", "<i8"), ("place", "<i8"), ("offset", "<i8")])
"""`count` names from `first` on, of messages from `offset` on; `place` is the number of the range that they were
read in."""
Runs = npt.NDArray[np.void]


class Seen(Protocol):
    """Names that were there before."""

    def overlap(self, firsts: Names, counts: Numbers) -> Mask:
        """Which of these runs have any of them."""
        ...


class Repeats(NamedTuple):
    places: Numbers
    offsets: Numbers


def runs_of(topic: str, ids: npt.NDArray[np.uint8], offsets: Numbers) -> Runs:
    """The runs of some messages of a partition, in their order; `ids` are their bytes, 16 in a row."""
    count = len(offsets)
    names = np.empty((count, NAME_BYTES), dtype=np.uint8)
    names[:, :TOPIC_BYTES] = np.frombuffer(hashlib.blake2b(topic.encode(), digest_size=TOPIC_BYTES).digest(), np.uint8)
    names[:, TOPIC_BYTES:] = ids
    words = names.view(">u8").reshape(count, 3)
    goes_on = (words[1:, 1] == words[:-1, 1]) & (words[1:, 2] - words[:-1, 2] == 1) & (words[1:, 2] != 0)
    goes_on &= np.diff(offsets) == 1
    starts = np.flatnonzero(np.concatenate([[True], ~goes_on])) if count else np.empty(0, np.int64)
    runs = np.empty(len(starts), dtype=RUN)
    runs["first"] = names.reshape(-1).view(NAME)[starts]
    runs["count"] = np.diff(np.append(starts, count))
    runs["place"] = 0
    runs["offset"] = offsets[starts]
    return runs


def find_repeats(runs: Runs, seen: Iterable[Seen]) -> tuple[Repeats, Runs]:
    """The messages whose name was seen before, or earlier among these (by place and offset); and runs without any name
    in common that have all the names of these, in their order.
    """
    runs = runs[np.argsort(runs["first"], kind="stable")]
    firsts, counts = np.ascontiguousarray(runs["first"]), runs["count"]
    among = _overlap_each_other(firsts, counts)
    before = np.zeros(len(runs), dtype=bool)
    seen = list(seen)
    for each in seen:
        before |= each.overlap(firsts, counts)
    suspects = runs[among | before]
    if not len(suspects):
        return Repeats(np.empty(0, np.int64), np.empty(0, np.int64)), runs
    single = _singles(suspects)
    single = single[np.lexsort((single["offset"], single["place"]))]
    # Stable: of one name, the first place comes first.
    single = single[np.argsort(single["first"], kind="stable")]
    is_first = np.concatenate([[True], single["first"][1:] != single["first"][:-1]])
    again = ~is_first
    names, ones = np.ascontiguousarray(single["first"]), single["count"]
    for each in seen:
        again |= each.overlap(names, ones)
    kept = np.concatenate([runs[~(among | before)], single[is_first]])
    kept = kept[np.argsort(kept["first"], kind="stable")]
    return Repeats(single["place"][again].astype(np.int64), single["offset"][again].astype(np.int64)), kept


def overlap(known: Names, known_counts: Numbers, firsts: Names, counts: Numbers) -> Mask:
    """Which runs have a name in common with any of the known ones, which are in their order and have none in common."""
    if not len(known) or not len(firsts):
        return np.zeros(len(firsts), dtype=bool)
    last = lasts(firsts, counts)
    # Of the known runs that begin before a run ends, the last one reaches furthest.
    place = np.searchsorted(known, last, side="right") - 1
    found = np.maximum(place, 0)
    return (place >= 0) & (lasts(known[found], known_counts[found]) >= firsts)


def lasts(firsts: Names, counts: Numbers) -> Names:
    """The last name of each run."""
    words = _words(firsts).copy()
    words[:, 2] += (counts - 1).astype(np.uint64)
    return words.reshape(-1).view(NAME)


def _words(names: Names) -> npt.NDArray[Any]:
    return np.ascontiguousarray(names).view(">u8").reshape(len(names), 3)


def _overlap_each_other(firsts: Names, counts: Numbers) -> Mask:
    """Which of these runs, in the order of their first names, have a name in common with another one."""
    if not len(firsts):
        return np.zeros(0, dtype=bool)
    own = np.arange(len(firsts))
    # The last run that begins before this one ends.
    reach = np.searchsorted(firsts, lasts(firsts, counts), side="right") - 1
    furthest = np.maximum.accumulate(reach)
    return (reach > own) | (np.concatenate([[-1], furthest[:-1]]) >= own)


def _singles(runs: Runs) -> Runs:
    """A run of one for each message."""
    counts = runs["count"]
    each = np.repeat(np.arange(len(runs)), counts)
    within = np.arange(len(each)) - np.repeat(np.cumsum(counts) - counts, counts)
    singles = np.empty(len(each), dtype=RUN)
    words = _words(runs["first"])[each]
    words[:, 2] += within.astype(np.uint64)
    singles["first"] = words.reshape(-1).view(NAME)
    singles["count"] = 1
    singles["place"] = runs["place"][each]
    singles["offset"] = runs["offset"][each] + within
    return singles
