"""The node under test: `sealane up` in a process, on one port and one data directory for all of its lives."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from sealane.testing.node_process import NodeProcess
from tests.integration.client.node_process import free_port

DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 0.002
SETTINGS = {
    # Small, so that segments end, are compacted, and journals are snapshotted, between two deaths.
    "storage.segment_bytes": 32_768,
    "storage.segment_bytes_first": 8_192,
    "storage.compaction_segments_min": 2,
    "storage.compaction_segments_max": 2,
    "node.snapshot_journal_bytes": 4_096,
}


class Node:
    """Started, killed and stopped by the harness; `ready_ns` is when each life's doors answered."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.port = free_port()
        self.ready_ns: list[int] = []
        self._node = NodeProcess(self.data, {**SETTINGS, "doors.native.port": self.port})

    @property
    def url(self) -> str:
        return f"sealane://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self._node.log_file

    async def begin(self) -> None:
        """Start the process; `ready` waits for its doors."""
        await asyncio.to_thread(self._node.start, wait=False)

    async def ready(self) -> None:
        await asyncio.to_thread(self._node.wait_ready)
        self.ready_ns.append(time.monotonic_ns())

    async def start(self) -> None:
        await self.begin()
        await self.ready()

    def compacts(self) -> bool:
        """Whether its helper process is at work."""
        children = Path(f"/proc/{self._node.pid}/task/{self._node.pid}/children")
        try:
            return bool(children.read_text().split())
        except OSError:
            return False

    def terminate(self) -> None:
        self._node.send(signal.SIGTERM)

    async def ended(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Its exit code, once it has ended by itself."""
        return await asyncio.to_thread(self._node.wait, seconds)

    async def kill(self) -> None:
        await asyncio.to_thread(self._node.kill)
