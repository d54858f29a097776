"""How the door closes: what was begun is answered, nothing new is begun, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from sealane.engine.local import LocalEngine, StorageSettings
from sealane.node.surroundings import wall_clock_us
from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.cipher_node import cipher_node, line_client
from tests.integration.cipher.conftest import OPEN
from tests.integration.cipher.plain_client import PlainClient
from tests.integration.native.conftest import eventually
from tests.integration.native.slow_disk import SlowFiles


async def test_what_was_said_before_is_answered_and_what_is_said_now_is_refused(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    settings = StorageSettings(commit="thread", compaction=False)
    engine = await LocalEngine.start(disk, settings=settings, clock=wall_clock_us, entropy=os.urandom)
    async with cipher_node(engine=engine) as node, line_client(node.address) as client:
        await client.make_queue("q")
        disk.goes_on.clear()
        client.send(*(f"publish q-exchange key {written(encrypted(f'm{number}'))}" for number in range(3)))
        await eventually(lambda: node.door.budget.in_flight_bytes > 0)
        draining = asyncio.create_task(node.door.drain(30))
        await eventually(lambda: node.door.draining)
        with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the kernel likes
            await asyncio.open_connection(*node.address.rsplit(":", 1))
        client.send(f"publish q-exchange key {written(encrypted('too-late'))}")
        disk.goes_on.set()

        assert [await client.line() for _ in range(3)] == ["ACK m0", "ACK m1", "ACK m2"]
        assert (await client.line()).startswith("Error: the node is about to stop and did not do this")
        assert await client.line() == ""
        await draining


async def test_what_was_delivered_may_still_be_acknowledged_and_nothing_more_is_pushed() -> None:
    async with cipher_node() as node, line_client(node.address) as client, line_client(node.address) as sender:
        await client.make_queue("q")
        message = await sender.publish("q")
        assert await client.ask("consume q") == "Consuming q"
        assert (await client.line()).startswith(f"Message: {message['message_id']} ")
        draining = asyncio.create_task(node.door.drain(30))
        await eventually(lambda: node.door.draining)
        assert await client.ask(f"ack {message['message_id']}") == f"ACK_CONFIRMED {message['message_id']}"
        assert await client.line() == ""
        await draining


async def test_a_client_that_never_acknowledges_does_not_keep_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealane.doors.cipher.connection.DRAIN_SECONDS_MAX", 0.2)
    async with cipher_node() as node, line_client(node.address) as client:
        await client.make_queue("q")
        await client.publish("q")
        assert (await client.ask("fetch q")).startswith("Message: ")
        async with asyncio.timeout(10):
            await node.door.drain(30)
        assert await client.line() == ""


def test_a_node_that_is_told_to_stop_answers_first_and_has_everything_when_it_is_back(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", OPEN) as node:
        with PlainClient(node.doors["cipher"]) as client:
            client.make_queue("orders")
            messages = [encrypted() for _ in range(200)]
            client.consume("orders")
            client.send(*(f"publish orders-exchange key {written(message)}" for message in messages))
            first = client.line()
            node.send(signal.SIGTERM)
            said = [first, *client.rest().splitlines()]
            assert node.wait() == 0
        acknowledged = [line.removeprefix("ACK ") for line in said if line.startswith("ACK ")]
        refused = [line for line in said if line.startswith("Error: ")]
        assert len(acknowledged) + len(refused) == 200
        assert all("the node is about to stop" in line for line in refused)
        node.start()
        with PlainClient(node.doors["cipher"]) as client:
            client.consume("orders")
            found = [message["message_id"] for message in client.messages(len(acknowledged))]
            assert sorted(found) == sorted(acknowledged)
            assert client.fetch("orders") is None
