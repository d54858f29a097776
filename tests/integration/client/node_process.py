"""A node in a process of its own that a test may kill, stop and start again, without blocking the test's event loop."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from sealane.testing import node_process


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class NodeProcess:
    """Started by `start` or on entering the block; whatever runs at the end of the block is killed."""

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        self.port = port or free_port()
        self._node = node_process.NodeProcess(directory / "data", {"doors.native.port": self.port})

    @property
    def url(self) -> str:
        return f"sealane://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns when its doors answer."""
        await asyncio.to_thread(self._node.start)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the signal, and return when the process is gone."""
        self._node.send(number)
        await asyncio.to_thread(self._node.wait)

    def pause(self) -> None:
        """It stands still, and its sockets stay open."""
        self._node.send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._node.send(signal.SIGCONT)

    async def restart(self, number: signal.Signals = signal.SIGKILL) -> None:
        await self.end(number)
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._node.kill)
