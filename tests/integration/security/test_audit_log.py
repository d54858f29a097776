"""An audit log on a disk that someone got at, with the master key at hand: whatever they did to it is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from sealane.client.embedded import EmbeddedLane
from sealane.engine import Append, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.message import Limits, from_payloads
from sealane.node.surroundings import of_this_machine
from sealane.node.topics import TopicRecord
from sealane.security.audit.entries import Entry, from_line

ENTRIES = 8


async def write_log(data: Path) -> None:
    async with EmbeddedLane(data, audited=True) as lane:
        for number in range(ENTRIES):
            await lane.create_topic(f"t{number}")


async def findings(data: Path) -> list[tuple[str, int]]:
    async with EmbeddedLane(data) as lane:
        report = await lane.administer("audit.verify")
        return [(each["kind"], each["number"]) for each in report["findings"]]


async def rewrite(data: Path, forge: Callable[[list[Entry]], Sequence[Entry]]) -> None:
    """Put other entries in the place of the log's, as whoever has the directory and its key can."""
    surroundings = of_this_machine()
    engine = await LocalEngine.start(
        DiskFiles(data), settings=StorageSettings(), clock=surroundings.clock, entropy=surroundings.entropy
    )
    try:
        value = await engine.get("topic/_system/audit")
        assert value is not None
        record = msgspec.json.decode(value.data, type=TopicRecord)
        key = PartitionKey("_system", "audit", record.incarnation, 0)
        await engine.open(key)
        stored = await engine.read(key, 0, bytes_max=1 << 24)
        entries = [from_line(payload) for each in stored for payload in each.batch.payloads()]
        forged = msgspec.structs.replace(record, incarnation=record.incarnation ^ 1)
        await engine.put("topic/_system/audit", msgspec.json.encode(forged), expected=value.version)
        key = key._replace(incarnation=forged.incarnation)
        opened = await engine.open(key)
        payloads = [entry.to_line() for entry in forge(entries)]
        batch = from_payloads(payloads, surroundings.stamp(), limits=Limits())
        await engine.commit([Append(key, opened.epoch, batch, opened.end)])
    finally:
        await engine.close()


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    await write_log(tmp_path)
    return tmp_path


def changed(entries: list[Entry]) -> list[Entry]:
    return [*entries[:3], msgspec.structs.replace(entries[3], principal="nobody"), *entries[4:]]


def changed_with_its_hash(entries: list[Entry]) -> list[Entry]:
    return [*entries[:3], msgspec.structs.replace(entries[3], principal="nobody").sealed(), *entries[4:]]


def chained_anew(entries: list[Entry]) -> list[Entry]:
    """Every hash after the change fits again; only the head, which is sealed elsewhere, does not."""
    forged = changed_with_its_hash(entries)
    for place in range(4, len(forged)):
        forged[place] = msgspec.structs.replace(forged[place], previous=forged[place - 1].hash).sealed()
    return forged


def without_the_middle(entries: list[Entry]) -> list[Entry]:
    return [*entries[:3], *entries[5:]]


def without_the_tail(entries: list[Entry]) -> list[Entry]:
    return entries[:-2]


def without_the_beginning(entries: list[Entry]) -> list[Entry]:
    return entries[2:]


def reordered(entries: list[Entry]) -> list[Entry]:
    return [*entries[:3], entries[4], entries[3], *entries[5:]]


def inserted(entries: list[Entry]) -> list[Entry]:
    forged = msgspec.structs.replace(entries[3], principal="nobody").sealed()
    return [*entries[:3], forged, *entries[3:]]


async def test_a_log_that_nobody_touched_is_as_it_was_written(data: Path) -> None:
    assert await findings(data) == []


@pytest.mark.parametrize(
    ("forge", "found"),
    [
        (changed, ("changed", 3)),
        (changed_with_its_hash, ("changed", 3)),
        (chained_anew, ("changed", ENTRIES - 1)),
        (without_the_middle, ("removed", 3)),
        (without_the_beginning, ("removed", 0)),
        (reordered, ("reordered", 4)),
        (inserted, ("inserted", 3)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
async def test_what_was_done_to_the_log_is_named(
    data: Path, forge: Callable[[list[Entry]], Sequence[Entry]], found: tuple[str, int]
) -> None:
    await rewrite(data, forge)
    assert found in await findings(data)


async def test_a_removed_tail_is_named_and_stays_so_when_the_log_has_grown_again(data: Path) -> None:
    await rewrite(data, without_the_tail)
    assert await findings(data) == [("removed", ENTRIES - 2)]
    await write_log_further(data)
    assert await findings(data) == [("removed", ENTRIES - 2)]


async def write_log_further(data: Path) -> None:
    async with EmbeddedLane(data) as lane:
        for number in range(ENTRIES):
            await lane.configure_topic(f"t{number}", messages_max=10)
