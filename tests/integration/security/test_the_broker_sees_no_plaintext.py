"""Sealed end to end means: neither the disk, nor the wire, nor the memory of the node ever has what was written.

Each place is searched for a marker of its own. The control publishes one that is not sealed, through the same lane into
the same node, and the same search finds it: so the search is able to find.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pytest

import sealane
from sealane.security.envelopes import KeyKind
from sealane.testing.node_process import NodeProcess
from tests.integration.security.process_memory import occurrences
from tests.integration.security.recording_relay import RecordingRelay

MESSAGES = 200
DEADLINE_SECONDS = 60.0
FILLER_BYTES = 1 << 16
SETTINGS = {
    # Sealing at rest would hide from the search of the disk what this is about.
    "topics.sealed": "off",
    # What is written is compacted soon, so that there are files of both kinds.
    "storage.segment_bytes": FILLER_BYTES,
    "storage.segment_bytes_first": FILLER_BYTES,
    "storage.compaction_segments_min": 1,
    "storage.compaction_segments_max": 1,
}


def marker(name: str) -> bytes:
    """Bytes that are nowhere by chance."""
    return b"marker:" + name.encode() + b":" + os.urandom(12).hex().encode()


async def consume_all(lane: sealane.Lane, topic: str, keys: sealane.PrivateKey | None) -> list[bytes]:
    got: list[bytes] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for batch in lane.consume_batches(topic, "reader", keys=keys):
            got += batch.payloads()
            await batch.ack(confirm=True)
            if len(got) == MESSAGES:
                return got
    raise AssertionError("unreachable")


def files_with(directory: Path, wanted: bytes) -> list[str]:
    return [str(path) for path in directory.rglob("*") if path.is_file() and wanted in content(path)]


def content(path: Path) -> bytes:
    """What a file holds; of a compressed one what comes out of it too. Nothing, if it was removed in this moment."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b""
    if path.suffix == ".arrow":
        data += b"".join(pa.ipc.open_file(path).read_all().column("payload").to_pylist())
    return data


async def is_compacted(lane: sealane.Lane, directory: Path, control: bytes) -> None:
    """Return when this, and so all that came before it, is in compacted files and nowhere else.

    It needs company to get there. That a compacted file exists would not be enough: it counts, and outlives a stop,
    when the log that it was made of is gone.
    """
    async with asyncio.timeout(DEADLINE_SECONDS):
        while files_with(directory / "wal", control):
            await lane.publish("filler", bytes(FILLER_BYTES))


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[NodeProcess]:
    with NodeProcess(tmp_path / "data", SETTINGS) as running:
        yield running


@pytest.mark.parametrize("kind", ["x25519", "rsa-2048"])
async def test_no_sealed_payload_is_on_disk_on_the_wire_or_in_memory(node: NodeProcess, kind: KeyKind) -> None:
    private = sealane.PrivateKey.generate(kind)
    secret, control = marker("sealed"), marker("plain")
    payloads = [secret + b":%d" % number for number in range(MESSAGES)]
    async with RecordingRelay(node.doors["native"]) as relay, sealane.connect(f"sealane://{relay.address}") as lane:
        await lane.register_key(private.public, "reader")
        await lane.publish_many("letters", payloads[:150], seal_for="reader")
        await asyncio.gather(*(lane.publish("letters", each, seal_for="reader") for each in payloads[150:190]))
        async with lane.producer("letters", seal_for="reader") as producer:
            for each in payloads[190:]:
                await producer.send(each)
        await lane.publish_many("postcards", [control + b":%d" % number for number in range(MESSAGES)])

        assert sorted(await consume_all(lane, "letters", private)) == sorted(payloads)
        assert len(await consume_all(lane, "postcards", None)) == MESSAGES

        assert occurrences(node.pid, control) > 0, "the search of memory must be able to find"
        assert occurrences(node.pid, secret) == 0
        assert relay.saw(control), "the search of the wire must be able to find"
        assert not relay.saw(secret)
        assert files_with(node.data, control), "the search of the log must be able to find"
        assert files_with(node.data, secret) == []
        await is_compacted(lane, node.data, control)
        assert list((node.data / "compacted").rglob("*letters*/*.arrow"))
    node.stop()
    assert files_with(node.data / "compacted", control), "the search of compacted files must be able to find"
    assert files_with(node.data, secret) == []
    assert secret not in node.log_file.read_bytes()
