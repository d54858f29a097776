"""Thousands of connections that say nothing: each costs a few kilobytes and one descriptor."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
from collections.abc import Callable, Iterator

import msgspec
import pytest
import uvloop

from sealane.node import NodeSettings
from sealane.security.settings import QuotaSettings, SecuritySettings
from sealane.wire import messages as wire
from sealane.wire.frames import frame
from tests.integration.native.conftest import eventually, running_node
from tests.integration.native.peer import Peer

CONNECTIONS = 5_000
IDLE_BYTES_MAX = 30_000
"""Of the node and of this test's own end together."""


@pytest.fixture
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CONNECTIONS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"{needed:,} descriptors are needed, the limit is {hard:,}: raise it with ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def come_in(host: str, port: int, count: int) -> list[socket.socket]:
    """Connect and be welcomed, one after another."""
    hello = frame(msgspec.msgpack.encode(wire.Hello([1], "idle")))[0]
    came = []
    for _ in range(count):
        connection = socket.create_connection((host, port), timeout=60)
        connection.sendall(hello)
        assert connection.recv(4_096)
        came.append(connection)
    return came


@pytest.mark.slow
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_five_thousand_idle_connections_cost_little(
    enough_descriptors: None, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def idle() -> None:
        quotas = QuotaSettings(connections_per_address_max=CONNECTIONS + 1)
        settings = NodeSettings(security=SecuritySettings(quotas=quotas))
        async with running_node(node_settings=settings) as running:
            host, port = running.address.rsplit(":", 1)
            loop = asyncio.get_running_loop()
            first = await loop.run_in_executor(None, come_in, host, int(port), 100)
            gc.collect()
            before = resident_bytes()
            others = await loop.run_in_executor(None, come_in, host, int(port), CONNECTIONS - 100)
            gc.collect()
            each = (resident_bytes() - before) / len(others)
            print(f"{each:,.0f} bytes each")
            assert running.door.connections == CONNECTIONS
            assert each < IDLE_BYTES_MAX

            running.door.sweep()
            async with await Peer.enter(running.address) as peer:
                assert isinstance(await peer.publish("orders", b"x"), wire.Published)
            for connection in [*first, *others]:
                connection.close()
            await eventually(lambda: running.door.connections == 0)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(idle())
