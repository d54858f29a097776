"""What the tables must say, by the client's record and the node's word; and what they say, read without Spark."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from sealane.pipeline.lake.tables import CLEAN_MESSAGES, DELIVERIES, QUARANTINE, RAW_HISTORY, RAW_MESSAGES, Lake, Table
from tests.spark.pipeline.killing.load import SUBSCRIPTION, Fate, Load, Place

Row = tuple[Any, ...]

PLACE = ("topic", "partition", "offset")
_EVENT = ("topic", "partition", "entry", "event", "subscription", "first", "stop")
HISTORY = (*_EVENT, "lease", "consumer", "time", "until", "cause", "reason", "mode", "filter")


def rows_of(lake: Path, table: Table) -> list[dict[str, Any]]:
    """As any tool reads them."""
    path = Lake(lake).path(table)
    if not Lake(lake).files(table):
        return []
    found: list[dict[str, Any]] = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return found


def said(lake: Path, table: Table, *columns: str) -> Counter[Row]:
    return Counter(tuple(_plain(row[name]) for name in columns) for row in rows_of(lake, table))


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _place(row: dict[str, Any]) -> Place:
    return Place(row["topic"], row["partition"], row["offset"])


def expect_same(table: Table, found: Counter[Row], expected: Counter[Row]) -> None:
    """Name what is too much and what is missing: the rows are many."""
    too_much, missing = list((found - expected).items()), list((expected - found).items())
    told = f"{table.full_name}: too much {too_much[:5]} of {len(too_much)}, missing {missing[:5]} of {len(missing)}"
    assert found == expected, told


def expect_nothing_twice(lake: Path, load: Load) -> None:
    """What every reader may rely on whenever it looks: nothing that was not sent, and nothing more than once."""
    for table in (RAW_MESSAGES, CLEAN_MESSAGES, QUARANTINE, DELIVERIES):
        places = Counter(_place(row) for row in rows_of(lake, table))
        assert set(places) <= set(load.sent), table.full_name
        assert not [place for place, count in places.items() if count > 1], table.full_name


def expect_all_once(lake: Path, load: Load) -> None:
    """The tables are what the oracle says, no more and no less."""
    _expect_messages(lake, load)
    _expect_clean(lake, load)
    _expect_history(lake, load)
    _expect_deliveries(lake, load)


def _expect_messages(lake: Path, load: Load) -> None:
    expected = Counter((*place, sent.id.bytes, len(sent.payload)) for place, sent in load.sent.items())
    expect_same(RAW_MESSAGES, said(lake, RAW_MESSAGES, *PLACE, "id", "bytes"), expected)


def _expect_clean(lake: Path, load: Load) -> None:
    """An id is there once, at one of the places where it was stored; poison is in the quarantine, and only there."""
    poison = {place for place, sent in load.sent.items() if sent.fate is Fate.POISON}
    expect_same(QUARANTINE, said(lake, QUARANTINE, *PLACE), Counter(tuple(place) for place in poison))
    found = {_place(row): bytes(row["id"]) for row in rows_of(lake, CLEAN_MESSAGES)}
    ids = {(sent.id.bytes,) for sent in load.sent.values() if sent.fate is not Fate.POISON}
    expect_same(CLEAN_MESSAGES, said(lake, CLEAN_MESSAGES, "id"), Counter(ids))
    assert all(load.sent[place].id.bytes == id for place, id in found.items())


def _expect_history(lake: Path, load: Load) -> None:
    expected = Counter(tuple(row[name] for name in HISTORY) for row in load.history())
    expect_same(RAW_HISTORY, said(lake, RAW_HISTORY, *HISTORY), expected)


def _expect_deliveries(lake: Path, load: Load) -> None:
    times = _times(load)
    expected = Counter(
        (
            *place,
            SUBSCRIPTION,
            sent.id.bytes,
            len(sent.payload),
            sent.outcome,
            sent.attempts,
            sent.reason,
            *times[place],
        )
        for place, sent in load.sent.items()
        if sent.outcome is not None
    )
    columns = ("id", "bytes", "outcome", "attempts", "reason", "first_granted", "settled")
    expect_same(DELIVERIES, said(lake, DELIVERIES, *PLACE, "subscription", *columns), expected)
    created = {_place(row): row["created"] for row in rows_of(lake, RAW_MESSAGES)}
    for row in rows_of(lake, DELIVERIES):
        assert row["published"] == created[_place(row)]
        assert row["latency_ms"] == (row["settled"] - row["published"]) // timedelta(microseconds=1) / 1000


def _times(load: Load) -> dict[Place, tuple[Any, Any]]:
    """When each message was first handed out, and when it was done with."""
    found: dict[Place, tuple[Any, Any]] = {}
    for row in load.history():
        for offset in range(row["first"] or 0, row["stop"] or 0):
            place = Place(row["topic"], row["partition"], offset)
            granted, settled = found.get(place, (None, None))
            if row["event"] == "granted":
                granted = granted or row["time"]
            elif row["event"] in ("acked", "dead-lettered", "expired", "dropped"):
                settled = settled or row["time"]
            found[place] = (granted, settled)
    return found
