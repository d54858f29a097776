"""On a node as users have it: who everyone is by this door, what they may do, and the door with TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.doors.cipher.door import CipherDoor
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.principals import ADMIN
from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.cipher_node import line_client
from tests.integration.cipher.conftest import OPEN
from tests.integration.cipher.plain_client import PlainClient
from tests.integration.native.conftest import eventually
from tests.secure_node import SecureNode, secure_node

DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    settings = {**OPEN, "doors.cipher.principal": "legacy", "doors.cipher.domain": "shop"}
    with NodeProcess.secure(tmp_path_factory.mktemp("secure-cipher") / "data", settings) as running:
        yield running


async def administer(node: NodeProcess, command: str, **arguments: Any) -> Any:
    async with asyncio.timeout(DEADLINE_SECONDS), sealane.connect(node.url, profile=node.profile) as lane:
        return await lane.administer(command, **arguments)


async def test_everyone_is_the_account_that_the_settings_name_and_may_do_what_it_is_granted(
    secure: NodeProcess,
) -> None:
    with PlainClient(secure.doors["cipher"]) as stranger:
        assert stranger.rest().startswith("Error: the account that doors.cipher.principal names does not exist")

    await administer(secure, "account.create", name="legacy", domain="shop", roles=["consumer"])
    with PlainClient(secure.doors["cipher"]) as client:
        assert client.ask("declare_queue orders") == "Queue declared"
        assert client.ask("declare_exchange ex").startswith("Error: 'legacy' may not manage 'shop/ex'")
        assert client.ask("declare_queue bank/orders").startswith("Error: ")
        assert client.ask("consume orders") == "Consuming orders"

    await administer(secure, "account.roles", name="legacy", roles=["member", "manager"])
    with PlainClient(secure.doors["cipher"]) as client:
        client.make_queue("orders")
        message = encrypted()
        client.publish("orders", message)
        assert client.fetch("orders") == message
        async with asyncio.timeout(DEADLINE_SECONDS), sealane.connect(secure.url, profile=secure.profile) as admin:
            async for found in admin.consume("shop/orders", subscription="audit"):
                assert found.payload.decode() == written(message)
                break
        await administer(secure, "account.disable", name="legacy")
        assert client.rest().startswith("Error: ")


@asynccontextmanager
async def secure_door(node: SecureNode, *, tls: bool) -> AsyncIterator[CipherDoor]:
    await node.node.identity.accounts.ensure("legacy", domain="shop", roles=["member"])
    gate = Gate(node.node, node.node.identity.authentication.authenticate)
    settings = CipherDoorSettings(port=0, tls=tls, principal="legacy")
    door = CipherDoor(gate, settings, tls=node.tls if tls else None)
    await door.start()
    try:
        yield door
    finally:
        await door.close()


async def test_by_tls_whoever_shows_a_certificate_is_who_that_says(tmp_path: Path) -> None:
    async with secure_node(tmp_path) as node, secure_door(node, tls=True) as door:
        anna = await node.issue("anna.example.com", roles=["member", "manager"])
        async with line_client(door.address, node.context(anna)) as client:
            await client.make_queue("orders")
            large = await client.publish("orders", encrypted(ciphertext_bytes=600 << 10))
            assert await client.ask("consume orders") == "Consuming orders"
            assert await client.line() == f"Message: {large['message_id']} {written(large)}"
            assert await client.ask(f"ack {large['message_id']}") == f"ACK_CONFIRMED {large['message_id']}"
        assert "example.com/orders" in node.node.topics


async def test_by_tls_whoever_shows_none_is_the_account(tmp_path: Path) -> None:
    async with secure_node(tmp_path) as node, secure_door(node, tls=True) as door:
        async with line_client(door.address, node.context()) as client:
            assert await client.ask("declare_queue orders") == "Queue declared"
            assert (await client.ask("declare_exchange ex")).startswith("Error: 'legacy' may not manage 'shop/ex'")
        assert "shop/orders" in node.node.topics


async def test_whoever_does_not_speak_tls_where_the_door_does_is_told_so(tmp_path: Path) -> None:
    async with secure_node(tmp_path) as node, secure_door(node, tls=True) as door, line_client(door.address) as plain:
        plain.send("declare_queue orders")
        assert await plain.rest() == "Error: this door speaks TLS (doors.cipher.tls); connect with it\n"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("account.disable", {"name": "legacy"}), ("account.roles", {"name": "legacy", "roles": ["producer"]})],
)
async def test_whoever_may_not_consume_any_more_is_told_and_let_go(
    tmp_path: Path, command: str, arguments: dict[str, Any]
) -> None:
    async with secure_node(tmp_path) as node, secure_door(node, tls=False) as door:
        async with line_client(door.address) as client:
            assert await client.ask("consume orders") == "Consuming orders"
            await Session(node.node, ADMIN).administer(command, arguments)
            assert (await client.rest()).startswith("Error: ")
        await eventually(lambda: door.connections == 0)


async def test_a_grant_that_is_taken_away_ends_what_it_allowed(tmp_path: Path) -> None:
    async with secure_node(tmp_path) as node, secure_door(node, tls=False) as door:
        session = Session(node.node, ADMIN)
        await session.administer("account.roles", {"name": "legacy", "roles": []})
        grant = {"subject": "legacy", "action": "consume", "pattern": "shop/orders"}
        await session.administer("grant.add", grant)
        async with line_client(door.address) as client:
            assert await client.ask("consume orders") == "Consuming orders"
            await session.administer("grant.remove", grant)
            assert (await client.rest()).startswith("Error: 'legacy' may not consume 'shop/orders'")
