"""The node under test: `sealane up` in a process, on one port and one data directory for all of its lives."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path

DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 0.002
SETTINGS = {
    "doors.http.port": "0",
    # Small, so that segments end, are compacted, and journals are snapshotted, between two deaths.
    "storage.segment_bytes": "32768",
    "storage.segment_bytes_first": "8192",
    "storage.compaction_segments_min": "2",
    "node.snapshot_journal_bytes": "4096",
}


def free_port() -> int:
    """One that was free a moment ago; every life of the node wants the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Node:
    """Started, killed and stopped by the harness; `ready_ns` is when each life's doors answered."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.log = directory / "node.log"
        self._ready_file = directory / "ready.json"
        self.port = free_port()
        self.ready_ns: list[int] = []
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"sealane://127.0.0.1:{self.port}"

    async def begin(self) -> None:
        """Start the process; `ready` waits for its doors."""
        assert self._process is None
        self._ready_file.unlink(missing_ok=True)
        pairs = {**SETTINGS, "doors.native.port": str(self.port)}
        settings = [part for name, value in pairs.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "sealane", "up", "--insecure", "--data", str(self.data)]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                "--ready-file",
                str(self._ready_file),
                *settings,
                stdout=log,
                stderr=log,
                env={name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")},
            )

    async def ready(self) -> None:
        assert self._process is not None
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not self._is_ready():
                assert self._process.returncode is None, f"the node did not start: {self._last_words()}"
                await asyncio.sleep(LOOK_SECONDS)
        self.ready_ns.append(time.monotonic_ns())

    def _is_ready(self) -> bool:
        try:
            return bool(json.loads(self._ready_file.read_text())["doors"])
        except (FileNotFoundError, ValueError):
            return False

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    async def start(self) -> None:
        await self.begin()
        await self.ready()

    def compacts(self) -> bool:
        """Whether its helper process is at work."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        try:
            return bool(children.read_text().split())
        except OSError:
            return False

    def terminate(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    async def ended(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        async with asyncio.timeout(seconds):
            code = await self._process.wait()
        self._process = None
        return code

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
