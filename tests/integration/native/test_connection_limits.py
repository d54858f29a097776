"""How many connections one address, and one principal, may have; half-open ones count from their first moment."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import sealane
from sealane.doors.http.door import HttpDoor
from sealane.doors.native.door import NativeDoor
from sealane.errors import TooManyConnections
from sealane.node import NodeSettings
from sealane.security.ca.issued import Issued
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quota, Subject
from sealane.security.settings import QuotaSettings, SecuritySettings
from sealane.wire import messages as wire
from tests.integration.native.conftest import eventually
from tests.integration.native.peer import Peer
from tests.integration.native.test_quotas import by_name
from tests.native_node import NativeNode, native_node
from tests.secure_node import SecureNode, secure_node

DEADLINE_SECONDS = 60.0
LOOPBACK = "127.0.0.1"
BILLING = Subject("principal", "billing")


def settings_of(**quotas: int) -> NodeSettings:
    return NodeSettings(security=SecuritySettings(quotas=QuotaSettings(**quotas)))


@asynccontextmanager
async def plain_node(**quotas: int) -> AsyncIterator[NativeNode]:
    settings = settings_of(**quotas)
    async with asyncio.timeout(DEADLINE_SECONDS), native_node(settings=settings, authenticate=by_name) as running:
        yield running


@asynccontextmanager
async def tls_node(directory: Path, **quotas: int) -> AsyncIterator[SecureNode]:
    async with asyncio.timeout(DEADLINE_SECONDS), secure_node(directory, settings=settings_of(**quotas)) as at:
        yield at


def connected(door: NativeDoor | HttpDoor) -> socket.socket:
    """Someone who connects, and says nothing."""
    host, _, port = door.address.rpartition(":")
    return socket.create_connection((host, int(port)))


@contextmanager
def half_open(door: NativeDoor | HttpDoor, count: int) -> Iterator[None]:
    with ExitStack() as all_of_them:
        for _ in range(count):
            all_of_them.enter_context(connected(door))
        yield


async def is_cut_off(running: SecureNode, shown: Issued | None = None) -> None:
    """Before its handshake nobody can be told anything."""
    with pytest.raises((OSError, EOFError)):
        await Peer.connect(running.native.address, running.context(shown))


async def said_to_one_more(running: NativeNode, **hello: object) -> wire.Goodbye:
    async with await Peer.connect(running.door.address) as peer:
        if hello:
            peer.say(wire.Hello([1], "peer", **hello))  # type: ignore[arg-type]
        (goodbye,) = await peer.gone()
    assert isinstance(goodbye, wire.Goodbye)
    return goodbye


# --- from one address -------------------------------------------------------------------------------------------------


async def test_one_more_from_an_address_is_refused_and_told_which_limit_it_met() -> None:
    async with plain_node(connections_per_address_max=3) as running:
        peers = [await Peer.enter(running.door.address, credentials={"token": "billing"}) for _ in range(3)]

        goodbye = await said_to_one_more(running)

        assert goodbye.code == "too-many-connections"
        assert "3 connections from 127.0.0.1 are open" in goodbye.text
        assert "security.quotas.connections_per_address_max" in goodbye.text
        assert running.node.measures.connections_refused == {"address": 1}
        for peer in peers:
            assert isinstance(await peer.publish("orders", b"x"), wire.Published)
            await peer.close()


async def test_half_open_connections_count_from_their_first_moment() -> None:
    async with plain_node(connections_per_address_max=5) as running:
        with half_open(running.door, 5):
            await eventually(lambda: running.door.connections == 5)
            assert (await said_to_one_more(running)).code == "too-many-connections"
        await eventually(lambda: running.node.entrances.connections_from(LOOPBACK) == 0)
        async with await Peer.enter(running.door.address, credentials={"token": "billing"}) as peer:
            assert isinstance(await peer.publish("orders", b"x"), wire.Published)


async def test_handshakes_of_tls_that_are_never_finished_count(tmp_path: Path) -> None:
    async with tls_node(tmp_path, connections_per_address_max=4) as running:
        entrances = running.node.entrances
        with half_open(running.native, 4):
            await eventually(lambda: entrances.connections_from(LOOPBACK) == 4)
            await is_cut_off(running)
            await eventually(lambda: running.node.measures.connections_refused["address"] >= 1)
        await eventually(lambda: entrances.connections_from(LOOPBACK) == 0)


async def test_a_connection_by_tls_counts_once_and_until_it_ends(tmp_path: Path) -> None:
    async with tls_node(tmp_path, connections_per_address_max=2) as running:
        anna = await running.issue("anna")
        first, second = await running.enter(anna), await running.enter(anna)
        assert running.node.entrances.connections_from(LOOPBACK) == 2
        await is_cut_off(running, anna)
        await first.close()
        await eventually(lambda: running.node.entrances.connections_from(LOOPBACK) == 1)
        await (await running.enter(anna)).close()
        await second.close()
        await eventually(lambda: running.node.entrances.connections_from(LOOPBACK) == 0)


async def test_the_http_door_counts_with_the_others(tmp_path: Path) -> None:
    async with tls_node(tmp_path, connections_per_address_max=3) as running:
        with half_open(running.http, 2), half_open(running.native, 1):
            await eventually(lambda: running.node.entrances.connections_from(LOOPBACK) == 3)
            one_more = connected(running.http)
            one_more.settimeout(DEADLINE_SECONDS)
            with one_more:
                loop = asyncio.get_running_loop()
                assert await loop.run_in_executor(None, _heard, one_more) == b""
        await eventually(lambda: running.node.entrances.connections_from(LOOPBACK) == 0)


def _heard(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1_024)
    except ConnectionError:
        return b""


# --- of one principal -------------------------------------------------------------------------------------------------


async def test_one_more_of_a_principal_is_refused_and_others_come_in() -> None:
    async with plain_node(connections_per_principal_max=2) as running:
        one = await Peer.enter(running.door.address, credentials={"token": "billing"})
        two = await Peer.enter(running.door.address, credentials={"token": "billing"})

        goodbye = await said_to_one_more(running, credentials={"token": "billing"})

        assert goodbye.code == "too-many-connections"
        assert "2 connections of 'billing' are open" in goodbye.text
        assert "security.quotas.connections_per_principal_max" in goodbye.text
        assert running.node.measures.connections_refused == {"principal": 1}
        await (await Peer.enter(running.door.address, credentials={"token": "stock"})).close()

        await one.close()
        await eventually(lambda: running.node.entrances.connections_of("billing") == 1)
        await (await Peer.enter(running.door.address, credentials={"token": "billing"})).close()
        await two.close()


async def test_a_quota_by_name_says_how_many_connections_a_principal_may_have() -> None:
    async with plain_node() as running:
        await running.node.identity.quotas.set(BILLING, Quota(connections_max=1), 0)
        async with await Peer.enter(running.door.address, credentials={"token": "billing"}):
            assert "1 connections of" in (await said_to_one_more(running, credentials={"token": "billing"})).text
            await running.node.identity.quotas.set(BILLING, Quota(connections_max=2), 0)
            async with await Peer.enter(running.door.address, credentials={"token": "billing"}):
                assert running.node.entrances.connections_of("billing") == 2


async def test_a_client_raises_which_limit_it_met() -> None:
    async with plain_node(connections_per_principal_max=1) as running:
        async with sealane.connect(running.url, token="billing") as lane:
            with pytest.raises(TooManyConnections) as caught:
                async with sealane.connect(running.url, token="billing", connect_timeout=0.5):
                    pass
            await lane.publish("orders", b"x")
        assert (caught.value.limit, caught.value.whose) == (1, "of 'billing'")
        assert "connections_per_principal_max" in caught.value.setting


async def test_whoever_is_shown_out_does_not_count_any_more() -> None:
    async with plain_node(connections_per_principal_max=1) as running:
        first = await Peer.enter(running.door.address, credentials={"token": "billing"})
        running.node.entrances.show_out(lambda who: who.name == "billing", "over")
        await first.gone()
        await first.close()
        await (await Peer.enter(running.door.address, credentials={"token": "billing"})).close()


async def test_a_principal_that_was_never_there_may_leave() -> None:
    async with plain_node() as running:
        entrances = running.node.entrances
        entrance = entrances.came(Principal("billing", kind="token"), LOOPBACK, lambda why: None)
        entrances.left(entrance)
        entrances.left(entrance)
        assert entrances.connections_of("billing") == 0
