"""A data directory that an engine writes, and `sealane log` at it."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner

from sealane.cli.main import app
from sealane.engine.contract import Append, PartitionKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.message import Batch, Limits, Row, Stamp, from_payloads, from_rows
from sealane.node.surroundings import wall_clock_us

ORDERS = PartitionKey("default", "orders", 1, 0)
ORDERS_1 = PartitionKey("default", "orders", 1, 1)
CARTS = PartitionKey("shop", "carts", 1, 0)
SETTINGS = StorageSettings(segment_bytes=16_384, segment_bytes_first=16_384, compaction_segments_min=1_000)
run = CliRunner()


class Node:
    """An engine and what has been written to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def start(self) -> None:
        self.engine = await LocalEngine.start(
            DiskFiles(self.directory),
            settings=SETTINGS,
            clock=wall_clock_us,
            entropy=os.urandom,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, os.urandom),
        )

    async def publish(self, partition: PartitionKey, *payloads: bytes, sealed: bool = True) -> None:
        await self.append(
            partition, from_payloads(payloads, Stamp(wall_clock_us(), os.urandom(16)), limits=Limits()), sealed
        )

    async def append(self, partition: PartitionKey, batch: Batch, sealed: bool = True) -> None:
        opened = await self.engine.open(partition, sealed=sealed)
        await self.engine.commit([Append(partition, opened.epoch, batch, opened.end, b"note", opened.journal_end)])

    async def compact(self) -> None:
        """Fill the active segment, so that it is closed, and compact."""
        housekeeping = self.engine.housekeeping
        filler = PartitionKey("default", "filler", 1, 0)
        while not any(segment.indexed for segment in housekeeping._closed):
            await self.publish(filler, os.urandom(4_000))
        assert await housekeeping.compact() is not None


def sealane(*arguments: object, code: int = 0):
    result = run.invoke(app, [str(argument) for argument in ("log", *arguments)])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


async def written(node: Node) -> None:
    row = Row(b"text", key=b"\xff\x00", headers={"h": "v"}, priority=7, expires_us=2_000_000_000_000_000)
    await node.append(
        ORDERS, from_rows([row, Row(b"\xff\xfe")], Stamp(wall_clock_us(), os.urandom(16)), limits=Limits())
    )
    await node.publish(ORDERS, b"2", b"3", b"4")
    await node.publish(ORDERS_1, b"other")
    await node.publish(CARTS, b"plain", sealed=False)
