"""Connections within a machine are not paced, and short frames leave at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvloop

from sealane.sockets import pacing, prepare
from sealane.sockets.pacing import stays_here

PACED = "bbr"


class Line(asyncio.BaseTransport):
    """As much of a transport as is looked at."""

    def __init__(self, plug: object) -> None:
        super().__init__({"socket": plug})


class Plug:
    """A socket that remembers what was asked of it, to an address that is not here."""

    family = socket.AF_INET

    def __init__(self, own: str, peer: str, congestion: bytes) -> None:
        self._own, self._peer = own, peer
        self.options: dict[int, object] = {socket.TCP_CONGESTION: congestion}

    def getsockname(self) -> tuple[str, int]:
        return self._own, 7070

    def getpeername(self) -> tuple[str, int]:
        return self._peer, 50_000

    def getsockopt(self, level: int, option: int, length: int) -> bytes:
        found = self.options[option]
        assert isinstance(found, bytes)
        return found.ljust(length, b"\0")

    def setsockopt(self, level: int, option: int, value: object) -> None:
        self.options[option] = value


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made: asyncio.AbstractEventLoop = request.param()
    yield made
    made.close()


async def both_ends(host: str) -> AsyncIterator[asyncio.BaseTransport]:
    """The two ends of a connection within this machine, prepared."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[asyncio.BaseTransport] = loop.create_future()

    class Coming(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            came.set_result(transport)

    server = await loop.create_server(Coming, host, 0)
    client, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname()[:2])
    for each in (client, await came):
        prepare(each)
        yield each
        each.close()
    server.close()
    await server.wait_closed()


def test_a_connection_within_the_machine_is_not_paced(loop: asyncio.AbstractEventLoop) -> None:
    async def look() -> None:
        async for end in both_ends("127.0.0.1"):
            plug = end.get_extra_info("socket")
            assert plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            assert not plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).startswith(PACED.encode())

    loop.run_until_complete(look())


def test_what_every_system_has_is_what_is_chosen() -> None:
    with socket.socket() as plug:
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    assert "reno" in allowed


def test_a_connection_to_elsewhere_keeps_what_the_system_has() -> None:
    plug = Plug("10.0.0.1", "10.0.0.2", b"bbr")
    prepare(Line(plug))
    assert plug.options == {socket.TCP_CONGESTION: b"bbr", socket.TCP_NODELAY: 1}


@pytest.mark.parametrize(
    ("had", "has"), [(b"bbr", b"reno"), (b"bbr2", b"reno"), (b"cubic", b"cubic"), (b"reno", b"reno")]
)
def test_only_what_paces_is_exchanged(had: bytes, has: bytes) -> None:
    plug = Plug("127.0.0.1", "127.0.0.1", had)
    prepare(Line(plug))
    assert plug.options[socket.TCP_CONGESTION] == has


def test_a_system_without_a_choice_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_CONGESTION", None)
    plug = Plug("127.0.0.1", "127.0.0.1", b"bbr")
    prepare(Line(plug))
    assert plug.options == {socket.TCP_CONGESTION: b"bbr", socket.TCP_NODELAY: 1}


def test_a_connection_that_is_gone_stops_nobody() -> None:
    with socket.socket() as never_connected:
        prepare(Line(never_connected))


def test_a_line_that_is_no_tcp_is_let_be() -> None:
    prepare(Line(None))
    one, other = socket.socketpair()
    with one, other:
        prepare(Line(one))


@pytest.mark.parametrize(
    ("own", "peer", "here"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("::1", "::1", True),
        ("fe80::1%eth0", "fe80::1%eth0", True),
        ("fe80::1%eth0", "fe80::2%eth0", False),
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
    ],
)
def test_which_addresses_stay_here(own: str, peer: str, here: bool) -> None:
    assert stays_here(own, peer) is here
