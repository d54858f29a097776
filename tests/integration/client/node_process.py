"""A node in a process of its own that a test may kill, stop and start again on the same data and port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from pathlib import Path
from types import TracebackType
from typing import Self

DEADLINE_SECONDS = 60.0


def free_port() -> int:
    """One that was free a moment ago; a node that is started again wants the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class NodeProcess:
    """Started by `start` or on entering the block; whatever runs at the end of the block is killed."""

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        self._data = directory / "data"
        self._ready = directory / "ready.json"
        self._log = directory / "node.log"
        self.port = port or free_port()
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"sealane://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns when its doors answer."""
        assert self._process is None, "it runs already"
        self._ready.unlink(missing_ok=True)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")},
            "SEALANE_DOORS__NATIVE__PORT": str(self.port),
            "SEALANE_DOORS__HTTP__PORT": "0",
        }
        command = [sys.executable, "-m", "sealane", "up", "--insecure"]
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, "--data", str(self._data), "--ready-file", str(self._ready),
                env=environment, stdout=log, stderr=log,
            )  # fmt: skip
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not self._is_ready():
                assert self._process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.01)

    def _is_ready(self) -> bool:
        try:
            return bool(json.loads(self._ready.read_text())["doors"])
        except (FileNotFoundError, ValueError):
            return False

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the signal, and return when the process is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            async with asyncio.timeout(DEADLINE_SECONDS):
                await process.wait()

    def pause(self) -> None:
        """It stands still, and its sockets stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def restart(self, number: signal.Signals = signal.SIGKILL) -> None:
        await self.end(number)
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        await self.end()
