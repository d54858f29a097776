"""A server inside the test's own process: what it tells of itself while it starts, serves, fails and stops."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sealane.errors import DataDirectoryInUse, InvalidSettings
from sealane.server.loading import load
from sealane.server.notices import Opened
from sealane.server.process import NodeFailed, Server
from sealane.server.settings import ServerSettings

DEADLINE_SECONDS = 60


def settings_in(directory: Path, *pairs: str) -> ServerSettings:
    free = ["insecure=on", f"data={directory / 'data'}", "doors.native.port=0", "doors.http.port=0"]
    return load(environ={}, pairs=[*free, *pairs]).settings


class Running:
    def __init__(self, settings: ServerSettings, ready_file: Path | None = None) -> None:
        self.doors: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self.server = Server(settings, ready_file=ready_file, on_ready=self._opened)
        self.done = asyncio.create_task(self.server.run())

    def _opened(self, opened: Opened) -> None:
        self.doors.set_result(opened.doors)


@asynccontextmanager
async def running(settings: ServerSettings, ready_file: Path | None = None) -> AsyncIterator[Running]:
    async with asyncio.timeout(DEADLINE_SECONDS):
        run = Running(settings, ready_file)
        either: set[asyncio.Future[Any]] = {run.done, run.doors}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if run.done.done():
            await run.done
        yield run
        run.server.stop()
        await run.done


async def get(address: str, path: str) -> tuple[int, bytes]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]


async def test_once_it_is_ready_everyone_who_asks_is_told_the_same(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    async with running(settings_in(tmp_path), ready_file) as run:
        doors = run.doors.result()
        said = json.loads(ready_file.read_text())
        status, metrics = await get(doors["http"], "/metrics")

        assert said["doors"] == doors
        assert (await get(doors["http"], "/ready"))[0] == 200
        assert status == 200
        assert b'sealane_connections{door="native"}' in metrics
    assert not ready_file.exists()


async def test_it_stops_when_it_is_told_before_it_was_ready(tmp_path: Path) -> None:
    server = Server(settings_in(tmp_path), on_ready=lambda opened: pytest.fail("it was to stop"))
    server.stop()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await server.run()

    assert not (tmp_path / "data" / "node.json").exists()


async def test_a_node_that_must_not_go_on_ends_the_server(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        run = Running(settings_in(tmp_path))
        await run.doors
        assert run.server._node is not None
        run.server._node.supervisor.stop("planted", RuntimeError("memory is not what is stored"))
        with pytest.raises(NodeFailed, match="stopped by itself: RuntimeError"):
            await run.done

    assert not (tmp_path / "data" / "node.json").exists()
    async with running(settings_in(tmp_path)):
        """The directory is free again."""


async def test_what_cannot_be_started_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as run:
        port = run.doors.result()["native"].rpartition(":")[2]
        with pytest.raises(DataDirectoryInUse):
            await Server(settings_in(tmp_path)).run()
        other = settings_in(tmp_path / "other", f"doors.native.port={port}")
        with pytest.raises(Exception, match=r"doors\.native\.port"):
            await Server(other).run()
    async with running(settings_in(tmp_path / "other")):
        """It held neither the directory nor a port."""


def test_settings_are_checked_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings):
        Server(settings_in(tmp_path, "doors.native.host=0.0.0.0"))

    assert list(tmp_path.iterdir()) == []


STUBBORN = """
import asyncio, sys
from sealane.server import running
from sealane.server.settings import ServerSettings

class Stubborn:
    def __init__(self, settings, **_):
        pass

    def stop(self):
        print("asked to stop", flush=True)

    async def run(self):
        print("running", flush=True)
        await asyncio.Event().wait()

running.Server = Stubborn
running.run(ServerSettings())
"""


async def test_a_second_ctrl_c_ends_it_at_once_and_a_second_sigterm_does_not() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", STUBBORN, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await process.stdout.readline() == b"running\n"
            # A terminate reaches a process twice when its whole group is told and make passes it on.
            for _ in range(2):
                process.terminate()
                assert await process.stdout.readline() == b"asked to stop\n"
            process.send_signal(2)
            assert await process.stdout.readline() == b"asked to stop\n"
            process.send_signal(2)
            assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
