"""A lake as the pipeline leaves it, of many messages, written at once; some of them break its balance, on purpose.

Three topics, two domains, sixteen partitions; subscriptions that began with their topic and one that began at its end;
leases of a few hundred to a few thousand messages. Some fail and are handed out again, some die or expire, some are
less urgent and wait: none of that is a problem, and none of it must be named.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sealane.delivery.history import HISTORY_SCHEMA
from sealane.pipeline.clean.rows import RAW_ROWS
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import RAW_HISTORY, RAW_MESSAGES, Lake

BEGAN = datetime(2026, 3, 1, 20, tzinfo=UTC)
HOURS = 8
"""Over midnight, so that each topic has two days."""
STEP_MESSAGES = 1_000_000
"""A micro-batch, as the pipeline takes them in."""
GROUP_ROWS = 100_000
"""Of a file, written at once."""
LEASE_MESSAGES = (200, 3_000)
LEASES_FEWEST = 16
"""Of a partition: in a small lake they are shorter."""
LESS_URGENT = 2
SAME_ID = bytes.fromhex("0195547a3c007abc8def0123456789ab")
SAME_AT = {0: 0.45, 1: 0.75}
"""Two messages of each topic have this id: in which partition, and where in it."""

TOPICS = (
    ("shop", "orders", 8, 0.4, ("billing", "audit")),
    ("shop", "payments", 4, 0.2, ("ledger", "late")),
    ("plant", "readings", 4, 0.4, ("store", "alarms")),
)
"""Domain, name, partitions, share of all messages, subscriptions. `late` begins in the middle."""
LATE = "late"

Named = tuple[str, str, int, int, str | None]
"""A problem: which, of which topic, partition, offset, and for which subscription."""


@dataclass(frozen=True, slots=True)
class Place:
    domain: str
    topic: str
    partition: int
    count: int
    subscriptions: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.domain}/{self.topic}"

    def at(self, share: float) -> int:
        return int(self.count * share)

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """When each message was created, in microseconds since 1970."""
        span_us = HOURS * 3_600 * 1_000_000
        return int(BEGAN.timestamp()) * 1_000_000 + np.arange(self.count, dtype=np.int64) * span_us // self.count


def write_lake(root: Path, count: int, *, seed: int = 1) -> list[Named]:
    """Write `raw/messages` and `raw/history` of about so many messages. Returns what must be named, and no other."""
    lake = Lake(root)
    places = list(_places(count))
    journals = [_journal(place, random.Random(seed + index)) for index, place in enumerate(places)]
    steps = max(1, round(count / STEP_MESSAGES))
    for number in range(steps):
        write = partial(_write_messages, places=places, journals=journals, step=(number, steps), seed=seed)
        append(lake, RAW_MESSAGES, write, writer="messages", number=number)
    append(lake, RAW_HISTORY, partial(_write_history, places=places, journals=journals), writer="history", number=0)
    return sorted((name for journal in journals for name in journal.named), key=str)


def _places(count: int) -> Iterator[Place]:
    for domain, topic, partitions, share, subscriptions in TOPICS:
        for partition in range(partitions):
            yield Place(domain, topic, partition, int(count * share / partitions), subscriptions)


# --- what happened ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Journal:
    rows: list[dict[str, Any]] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    """Messages that are less urgent than the others."""
    lost: set[int] = field(default_factory=set)
    same: set[int] = field(default_factory=set)
    named: list[Named] = field(default_factory=list)

    def tell(self, event: str, subscription: str, first: int, stop: int, time: int | None, **more: Any) -> None:
        entry = {"entry": len(self.rows), "event": event, "subscription": subscription, "first": first, "stop": stop}
        self.rows.append({**entry, "time": time, **more})


def _journal(place: Place, choose: random.Random) -> Journal:
    journal = Journal()
    times = place.times
    journal.waiting = {choose.randrange(place.count) for _ in range(place.count // 20_000)}
    for subscription in place.subscriptions:
        begin = place.at(0.5) if subscription == LATE else 0
        journal.tell("subscribed", subscription, 0, begin, None, mode="shared")
        _deliver(journal, place, subscription, begin, times, choose)
    if place.partition == 0:
        _plant(journal, place, times)
    if place.partition in SAME_AT:
        same = place.at(SAME_AT[place.partition])
        journal.same.add(same)
        journal.named.append(("duplicated", place.name, place.partition, same, None))
    return journal


def _deliver(
    journal: Journal, place: Place, subscription: str, begin: int, times: npt.NDArray[np.int64], choose: random.Random
) -> None:
    """Leases one after the other; the last ones are still held."""
    shortest, longest = (min(each, place.count // LEASES_FEWEST) for each in LEASE_MESSAGES)
    held_from = place.count - shortest
    first, lease, floor = begin, 0, begin
    while first < place.count:
        stop = min(place.count, first + choose.randint(shortest, longest))
        time, lease = int(times[stop - 1]) + choose.randint(500, 20_000), lease + 1
        tell = partial(journal.tell, subscription=subscription, lease=lease)
        waiting = [offset for offset in sorted(journal.waiting) if first <= offset < stop]
        for some in _without(first, stop, waiting):
            tell("granted", first=some[0], stop=some[1], time=time, consumer=f"{subscription}-{lease % 3}")
        for offset in waiting:
            tell("granted", first=offset, stop=offset + 1, time=time + 100, consumer=f"{subscription}-{lease % 3}")
        if stop <= held_from:
            _settle(tell, first, stop, time + 5_000, choose)
            floor = stop
            if lease % 50 == 0:
                journal.tell("standing", subscription, 0, floor, None, mode="shared")
        first = stop
    journal.tell("standing", subscription, 0, floor, None, mode="shared")


def _settle(tell: Any, first: int, stop: int, time: int, choose: random.Random) -> None:
    """Mostly acknowledged as a whole; of some leases one message fails, and is done with another time."""
    chance = choose.random()
    if chance > 0.1:
        tell("acked", first=first, stop=stop, time=time)
        return
    failing = choose.randrange(first, stop)
    for some in _without(first, stop, [failing]):
        tell("acked", first=some[0], stop=some[1], time=time)
    one = {"first": failing, "stop": failing + 1}
    tell("failed", **one, time=time, cause="nack", reason="no such customer")
    tell("granted", **one, time=time + 1_000, consumer="again")
    tell("acked" if chance > 0.02 else "dead-lettered" if chance > 0.01 else "expired", **one, time=time + 9_000)


def _without(first: int, stop: int, offsets: list[int]) -> list[tuple[int, int]]:
    edges = [first - 1, *offsets, stop]
    return [(one + 1, other) for one, other in pairwise(edges) if other > one + 1]


def _plant(journal: Journal, place: Place, times: npt.NDArray[np.int64]) -> None:
    """One that is gone from the log, one that was never settled, one that was settled twice, and one that was handed
    out too late.
    """
    reader = place.subscriptions[0]
    gone, unsettled, twice, late = (place.at(share) for share in (0.2, 0.3, 0.4, 0.6))
    _cut(journal, ("acked",), reader, unsettled)
    journal.lost.add(gone)
    again = {"first": twice, "stop": twice + 1, "time": int(times[-1]) + 1}
    journal.tell("granted", reader, **again, lease=99_998, consumer="again")
    journal.tell("acked", reader, **again, lease=99_998)
    _cut(journal, ("granted", "acked"), reader, late)
    # Where it is told decides, not when: it is put behind the next lease's grant, and entries are numbered once more.
    after, row = next(
        (number, row)
        for number, row in enumerate(journal.rows, start=1)
        if (row["event"], row["subscription"]) == ("granted", reader) and row["first"] > late + 1
    )
    journal.rows[after:after] = [
        {**row, "event": event, "first": late, "stop": late + 1} for event in ("granted", "acked")
    ]
    for entry, each in enumerate(journal.rows):
        each["entry"] = entry
    journal.waiting -= {gone, unsettled, twice, late}
    journal.named += [
        ("missing", place.name, place.partition, gone, None),
        ("missing", place.name, place.partition, unsettled, reader),
        ("duplicated", place.name, place.partition, twice, reader),
        ("out of order", place.name, place.partition, late, reader),
    ]


def _cut(journal: Journal, events: tuple[str, ...], reader: str, offset: int) -> None:
    """Take an offset out of what these events say."""
    found = []
    for row in journal.rows:
        if row["event"] in events and row["subscription"] == reader and row["first"] <= offset < row["stop"]:
            parts = _without(row["first"], row["stop"], [offset])
            found += [{**row, "first": first, "stop": stop} for first, stop in parts]
        else:
            found.append(row)
    journal.rows[:] = found


# --- the files --------------------------------------------------------------------------------------------------------


def _write_messages(
    staging: Path, places: list[Place], journals: list[Journal], step: tuple[int, int], seed: int
) -> None:
    number, steps = step
    for index, (place, journal) in enumerate(zip(places, journals, strict=True)):
        first, stop = (place.count * each // steps for each in (number, number + 1))
        rows = _messages(place, journal, first, stop, np.random.default_rng([seed, number, index]))
        _write_days(staging, place, index, rows, rows["created"])


def _messages(place: Place, journal: Journal, first: int, stop: int, chance: np.random.Generator) -> pa.Table:
    offsets = np.arange(first, stop, dtype=np.int64)
    times = place.times[first:stop]
    ids = _version_7(times, chance)
    for offset in journal.same:
        if first <= offset < stop:
            ids[offset - first] = np.frombuffer(SAME_ID, np.uint8)
    priorities = np.full(len(offsets), 5, np.int8)
    waiting = [offset - first for offset in journal.waiting if first <= offset < stop]
    priorities[waiting] = LESS_URGENT
    starts = pa.py_buffer(np.arange(0, 16 * len(offsets) + 1, 16, dtype=np.int32))
    known = {
        "id": pa.Array.from_buffers(pa.binary(), len(offsets), [None, starts, pa.py_buffer(ids.tobytes())]),
        "priority": pa.array(priorities),
        "created": pa.array(times, RAW_ROWS.field("created").type),
        "producer": pa.repeat(pa.scalar(chance.bytes(16)), len(offsets)),
        "partition": pa.repeat(pa.scalar(place.partition, pa.int32()), len(offsets)),
        "offset": pa.array(offsets),
        "bytes": pa.array(chance.integers(20, 2_000, len(offsets), dtype=np.int32)),
    }
    columns = {
        each.name: known.get(each.name, pa.nulls(len(offsets), each.type))
        for each in RAW_ROWS
        if each.name not in ("domain", "topic")
    }
    rows = pa.table(columns)
    gone = [offset for offset in journal.lost if first <= offset < stop]
    return rows.filter(pa.array(~np.isin(offsets, gone))) if gone else rows


def _version_7(times: npt.NDArray[np.int64], chance: np.random.Generator) -> npt.NDArray[np.uint8]:
    """UUIDs of version 7: milliseconds, then chance."""
    ids = np.frombuffer(chance.bytes(16 * len(times)), np.uint8).reshape(-1, 16).copy()
    ids[:, :6] = (times // 1_000).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    ids[:, 6] = ids[:, 6] & 0x0F | 0x70
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return ids


def _write_history(staging: Path, places: list[Place], journals: list[Journal]) -> None:
    names = [each for each in HISTORY_SCHEMA if each.name != "runs"]
    schema = pa.schema([*names, ("partition", pa.int32()), ("first", pa.int64()), ("stop", pa.int64())])
    for index, (place, journal) in enumerate(zip(places, journals, strict=True)):
        rows = pa.Table.from_pylist([{**row, "partition": place.partition} for row in journal.rows], schema)
        # What has no time of its own has that of its coming in.
        _write_days(staging, place, index, rows, rows["time"].fill_null(pa.scalar(BEGAN, schema.field("time").type)))


def _write_days(staging: Path, place: Place, index: int, rows: pa.Table, moments: pa.ChunkedArray) -> None:
    days = moments.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    for day in days.unique().to_pylist():
        path = staging / f"domain={place.domain}" / f"topic={place.topic}" / f"date={day}"
        path.mkdir(parents=True, exist_ok=True)
        chosen = rows.filter(pa.array(days.to_numpy() == np.datetime64(day)))
        pq.write_table(chosen, path / f"part-{index:05d}.parquet", compression="zstd", row_group_size=GROUP_ROWS)
