"""Reads of what is stored compressed: counted by what it unpacks to, and handed on as it is to who unpacks it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealane.engine import Append, Packed, PartitionKey, Stored
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.message import Limits, Stamp, from_payloads

ORDERS = PartitionKey("default", "orders", 1, 0)
MESSAGES = 100
BATCHES = 12
PAYLOAD_BYTES = 6_000
BATCH_BYTES = MESSAGES * PAYLOAD_BYTES
"""More than half of what compaction joins: each stays the batch that it was."""
BIG = 1 << 30


async def engine_on(directory: Path) -> LocalEngine:
    return await LocalEngine.start(
        DiskFiles(directory),
        # Every batch takes more than a segment, so that all but the last are in segments that have ended.
        settings=StorageSettings(
            segment_bytes=8192, segment_bytes_first=8192, compaction_segments_min=1_000, tail_bytes_max=1
        ),
        clock=lambda: time.time_ns() // 1_000,
        entropy=os.urandom,
        compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
    )


async def fill(engine: LocalEngine, *, sealed: bool) -> None:
    opened = await engine.open(ORDERS, sealed=sealed)
    for number in range(BATCHES):
        payloads = [(b"%d " % (number * MESSAGES + row)).ljust(PAYLOAD_BYTES, b"x") for row in range(MESSAGES)]
        batch = from_payloads(payloads, Stamp(number, os.urandom(16)), limits=Limits())
        await engine.commit([Append(ORDERS, opened.epoch, batch, number * MESSAGES, None, 0)])


async def compact(engine: LocalEngine) -> None:
    assert engine.housekeeping is not None
    while not any(segment.indexed for segment in engine.housekeeping._closed):
        engine.housekeeping.wake()
        await engine.get("wait")
    assert await engine.housekeeping.compact() is not None


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[LocalEngine]:
    engine = await engine_on(tmp_path)
    await fill(engine, sealed=True)
    await compact(engine)
    yield engine
    await engine.close()


def opened(found: list[Stored | Packed]) -> list[Stored]:
    return [each.opened() if isinstance(each, Packed) else each for each in found]


async def test_what_is_compacted_stays_packed_and_is_the_same_when_it_is_opened(engine: LocalEngine) -> None:
    found = await engine.read_packed(ORDERS, 0, bytes_max=BIG)
    packed = [each for each in found if isinstance(each, Packed)]
    assert packed
    assert sum(len(each.data) for each in packed) < sum(each.nbytes for each in packed) // 4
    plain = await engine.read(ORDERS, 0, bytes_max=BIG)
    assert [(each.base, each.stop) for each in found] == [(each.base, each.stop) for each in plain]
    assert opened(found) == plain


async def test_what_is_not_sealed_or_not_compacted_is_given_as_ever(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    await fill(engine, sealed=False)
    before = await engine.read_packed(ORDERS, 0, bytes_max=BIG)
    await compact(engine)
    after = await engine.read_packed(ORDERS, 0, bytes_max=BIG)
    assert not any(isinstance(each, Packed) for each in (*before, *after))
    assert [payload for each in opened(before) for payload in each.batch.payloads()] == [
        payload for each in opened(after) for payload in each.batch.payloads()
    ]
    await engine.close()


@pytest.mark.parametrize("how", ["read", "read_packed"])
async def test_a_read_ends_by_what_was_unpacked_not_by_what_is_stored(engine: LocalEngine, how: str) -> None:
    offsets = []
    at = 0
    while found := await getattr(engine, how)(ORDERS, at, bytes_max=2 * BATCH_BYTES):
        offsets.append((found[0].base, found[-1].stop))
        at = found[-1].stop
    assert at == BATCHES * MESSAGES
    assert max(stop - start for start, stop in offsets) <= 3 * MESSAGES


async def test_a_packed_read_ends_where_it_is_to_stop(engine: LocalEngine) -> None:
    found = await engine.read_packed(ORDERS, 150, bytes_max=BIG, stop=301)
    assert [(each.base, each.stop) for each in found] == [(100, 200), (200, 300), (300, 400)]


async def test_what_is_damaged_is_left_out_of_packed_reads_too(tmp_path: Path) -> None:
    engine = await engine_on(tmp_path)
    await fill(engine, sealed=True)
    await compact(engine)
    row = engine._partitions[ORDERS].messages.row(2)
    file = DiskFiles(tmp_path).open(engine._reads._sources.name(row.file))
    middle = row.position + row.length // 2
    file.write_at(middle, [bytes([file.read_at(middle, 1)[0] ^ 1])])
    file.close()
    found = await engine.read_packed(ORDERS, 0, bytes_max=BIG)
    missing = set(range(BATCHES * MESSAGES)).difference(*(range(each.base, each.stop) for each in found))
    assert missing == set(range(row.base, row.stop))
    await engine.close()
