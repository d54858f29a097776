"""The native door with TLS: who is let in, who is turned away, and who is shown out when their credential ends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sealane.errors import Unauthenticated
from sealane.node.session import Session
from sealane.node.surroundings import wall_clock_us
from sealane.wire import messages as wire
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer, batch_of
from tests.secure_node import SecureNode, secure_node

CUT_SECONDS_MAX = 5.0
"""Within which connections of a revoked credential are cut."""
HOUR_US = 3600 * 1_000_000
GARBAGE = (b"", bytes(100_000), os.urandom(5_000), b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 900)


class Clock:
    def __init__(self) -> None:
        self.passed_us = 0

    def __call__(self) -> int:
        return wall_clock_us() + self.passed_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def running(tmp_path: Path, clock: Clock, no_stray_errors: None) -> AsyncIterator[SecureNode]:
    async with secure_node(tmp_path, clock=clock) as started:
        yield started


async def goodbye_of(peer: Peer) -> wire.Goodbye:
    """The last word that the node says."""
    (last,) = [message for message in await peer.gone() if isinstance(message, wire.Goodbye)]
    return last


async def turned_away(running: SecureNode, tls: ssl.SSLContext, **hello: object) -> wire.Goodbye:
    peer = await Peer.connect(running.native.address, tls)
    peer.say(wire.Hello([1], "peer", **hello))  # type: ignore[arg-type]
    said = await goodbye_of(peer)
    await peer.close()
    return said


# --- coming in --------------------------------------------------------------------------------------------------------


async def test_a_certificate_says_who_someone_is(running: SecureNode) -> None:
    anna = await running.issue("anna.example.com")
    peer = await Peer.connect(running.native.address, running.context(anna))
    peer.say(wire.Hello([1], "peer"))
    welcome = await peer.hear(wire.Welcome)

    assert (welcome.principal, welcome.domain) == ("anna.example.com", "example.com")
    assert isinstance(await peer.publish("orders", b"x"), wire.Published)
    assert "example.com/orders" in running.node.topics
    await peer.close()


async def test_refused_whoever_shows_nothing(running: SecureNode) -> None:
    said = await turned_away(running, running.context())

    assert said.code == "unauthenticated"
    assert len(running.node.entrances) == 0


async def test_refused_a_revoked_certificate_at_its_next_handshake(running: SecureNode) -> None:
    anna = await running.issue("anna")
    await running.node.identity.authorities.revoke("anna", "key-compromise")

    assert (await turned_away(running, running.context(anna))).code == "unauthenticated"


async def test_refused_a_certificate_whose_time_is_over(running: SecureNode, clock: Clock) -> None:
    """By the node's clock: that of OpenSSL has not come so far."""
    anna = await running.issue("anna", days=1)
    clock.passed_us = 25 * HOUR_US

    assert (await turned_away(running, running.context(anna))).code == "unauthenticated"


# --- being shown out --------------------------------------------------------------------------------------------------


async def test_a_live_connection_of_a_revoked_certificate_is_cut_and_nobody_elses(running: SecureNode) -> None:
    anna, boris = await running.enter(await running.issue("anna")), await running.enter(await running.issue("boris"))
    async with anna, boris:
        assert isinstance(await anna.publish("orders", b"x"), wire.Published)
        await running.node.identity.authorities.revoke("anna", "key-compromise")
        async with asyncio.timeout(CUT_SECONDS_MAX):
            said = await goodbye_of(anna)

        assert said.code == "unauthenticated"
        assert isinstance(await boris.publish("orders", b"y"), wire.Published)
        assert len(running.node.entrances) == 1


async def test_one_that_does_not_listen_is_cut_all_the_same(running: SecureNode) -> None:
    anna = await running.enter(await running.issue("anna"))
    anna.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await running.node.identity.authorities.revoke("anna", "key-compromise")
    async with asyncio.timeout(CUT_SECONDS_MAX):
        await eventually(lambda: running.native.connections == 0)
    anna.writer.transport.abort()


async def test_a_connection_ends_with_the_time_of_its_certificate(running: SecureNode, clock: Clock) -> None:
    async with await running.enter(await running.issue("anna", days=1)) as anna:
        clock.passed_us = 23 * HOUR_US
        running.native.sweep()
        assert isinstance(await anna.publish("orders", b"x"), wire.Published)
        clock.passed_us = 25 * HOUR_US
        async with asyncio.timeout(CUT_SECONDS_MAX):
            assert (await goodbye_of(anna)).code == "unauthenticated"


async def test_a_connection_ends_when_its_account_is_disabled(running: SecureNode) -> None:
    async with await running.enter(await running.issue("anna")) as anna:
        await running.node.identity.accounts.change("anna", disabled=True)
        async with asyncio.timeout(CUT_SECONDS_MAX):
            assert (await goodbye_of(anna)).code == "unauthenticated"


async def test_no_command_is_carried_out_for_a_credential_that_is_over(running: SecureNode) -> None:
    """Not even in the second before its connection is cut."""
    anna = await running.issue("anna")
    der = ssl.PEM_cert_to_DER_cert(anna.certificate)
    session = Session(running.node, running.node.identity.authorities.principal(der))
    batch = session.open_batch(batch_of(b"x"))
    await session.publish("orders", batch)
    await running.node.identity.authorities.revoke("anna", "key-compromise")

    with pytest.raises(Unauthenticated, match="revoked"):
        await session.publish("orders", batch)
    with pytest.raises(Unauthenticated, match="revoked"):
        await session.browse("orders", 0, 0)
    with pytest.raises(Unauthenticated, match="revoked"):
        await session.topics()
    with pytest.raises(Unauthenticated, match="revoked"):
        await session.is_transaction_done("42")


# --- hostile ends -----------------------------------------------------------------------------------------------------


async def test_plain_text_is_told_that_this_door_speaks_tls(running: SecureNode) -> None:
    peer = await Peer.connect(running.native.address)
    peer.say(wire.Hello([1], "peer"))
    said = await goodbye_of(peer)
    await peer.close()

    assert said.code == "unauthenticated"
    assert "sealanes://" in said.text
    assert running.node.measures.handshakes_refused == {"native": 1}


async def test_garbage_harms_nobody(running: SecureNode) -> None:
    async with await running.enter(await running.issue("anna")) as neighbour:
        for garbage in GARBAGE:
            reader, writer = await asyncio.open_connection(*running.native.address.split(":"))
            writer.write(garbage)
            writer.write_eof()
            try:
                await reader.read()
            except ConnectionError:
                """As good as a close."""
            writer.transport.abort()
            assert isinstance(await neighbour.publish("orders", b"x"), wire.Published)
        await eventually(lambda: running.native.connections == 1)
        assert running.node.supervisor.crashes == {}


async def test_a_handshake_that_stops_half_way_ends_with_the_door(running: SecureNode) -> None:
    host, port = running.native.address.split(":")
    halves = [socket.create_connection((host, int(port))) for _ in range(20)]
    for half in halves:
        half.sendall(b"\x16\x03\x01\x02\x00")
    await running.native.close()
    for half in halves:
        half.setblocking(False)
        async with asyncio.timeout(CUT_SECONDS_MAX):
            try:
                assert await asyncio.get_running_loop().sock_recv(half, 1) == b""
            except ConnectionError:
                """As good as a close."""
        half.close()


async def test_tls_at_a_door_of_plain_text_is_refused(plain: Running) -> None:
    async with await Peer.enter(plain.address) as neighbour:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Peer.connect(plain.address, ssl.create_default_context())
        assert isinstance(await neighbour.publish("orders", b"x"), wire.Published)


@pytest.fixture
async def plain(no_stray_errors: None) -> AsyncIterator[Running]:
    async with running_node() as started:
        yield started
