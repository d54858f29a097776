"""How often a message comes again, and what the log says of its life."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealane.node.topic_config import TopicConfig
from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.cipher_node import cipher_node, line_client
from tests.integration.canaries import Aviary
from tests.integration.cipher.conftest import OPEN
from tests.integration.cipher.plain_client import PlainClient
from tests.integration.native.conftest import eventually


async def test_connections_that_end_count_no_attempt() -> None:
    """A receiver may take one message and go, while a hundred were on their way to it."""
    async with cipher_node(attempts_max=2) as node:
        async with line_client(node.address) as client:
            await client.make_queue("q")
            message = await client.publish("q")
        for _ in range(5):
            async with line_client(node.address) as client:
                assert await client.ask("consume q") == "Consuming q"
                assert await client.line() == f"Message: {message['message_id']} {written(message)}"
            await eventually(lambda: node.door.connections == 0)


async def test_a_message_that_is_never_acknowledged_is_a_dead_letter_in_the_end() -> None:
    async with cipher_node(attempts_max=3, lease_seconds=0.05) as node, line_client(node.address) as client:
        await client.make_queue("q")
        message = await client.publish("q")
        assert await client.ask("consume q") == "Consuming q"
        for _ in range(3):
            assert await client.line() == f"Message: {message['message_id']} {written(message)}"
        await eventually(lambda: "default/q.cipher.dead" in node.node.topics)
        assert await client.ask("fetch q") == "No message in q"
        dead = f"Message: {message['message_id']} {written(message)}"
        assert await client.ask("fetch q.cipher.dead") == dead


async def test_room_in_the_window_is_not_lost_with_messages_that_had_to_make_room() -> None:
    """The oldest messages of a full queue are dropped, also those that were delivered."""
    async with cipher_node(window_messages=2, lease_seconds=1) as node, line_client(node.address) as client:
        await node.node.create_topic("default/q", TopicConfig(messages_max=2, when_full="drop-oldest"))
        await client.make_queue("q")
        assert await client.ask("consume q") == "Consuming q"
        for _ in range(2):
            message = await client.publish("q")
            assert await client.line() == f"Message: {message['message_id']} {written(message)}"
        late = [await client.publish("q") for _ in range(2)]
        for message in late:
            assert await client.line() == f"Message: {message['message_id']} {written(message)}"


LIVES = [
    r"a message was published .*message_id={0}",
    r"a message was delivered .*message_id={0}",
    r"a message came back .*message_id={0} .*why='the connection ended'",
    r"a message was delivered .*message_id={0}",
    r"a message was acknowledged .*message_id={0}",
]


@pytest.mark.parametrize("told", [True, False])
def test_the_log_tells_of_each_messages_life_and_never_what_is_in_it(tmp_path: Path, told: bool) -> None:
    birds = Aviary()
    secrets = {name: birds.plant(name.replace("_", "")) for name in ("enc_session_key", "nonce", "tag", "ciphertext")}
    settings = {**OPEN, "doors.cipher.log_messages": told, "log.level": "debug"}
    messages = [{**encrypted(), **{name: _padded(value) for name, value in secrets.items()}} for _ in range(4)]
    with NodeProcess(tmp_path / "data", settings) as node:
        with PlainClient(node.doors["cipher"]) as client:
            client.make_queue("orders")
            client.publish("orders", messages[0])
            assert client.fetch("orders") == messages[0]
        with PlainClient(node.doors["cipher"]) as client:
            client.consume("orders")
            client.message()
            client.ack(messages[0]["message_id"])
            client.publish_batch("orders", messages[1:])
            client.messages(3)
            client.send(f"publish orders-exchange nowhere {written(messages[0])}", "publish orders-exchange key {")
            client.lines(2)
        node.stop()
    log = node.log_file.read_text()

    assert birds.found_in(log.encode()) == []
    life = [line for line in log.splitlines() if "sealane.doors.cipher" in line]
    if not told:
        assert life == []
        return
    own = [line for line in life if messages[0]["message_id"] in line]
    assert len(own) == len(LIVES)
    for line, pattern in zip(own, LIVES, strict=True):
        assert re.search(pattern.format(messages[0]["message_id"]), line), line
    first, last = messages[1]["message_id"], messages[3]["message_id"]
    assert re.search(rf"messages were published .*count=3 .*first={first} .*last={last}", log)
    assert len([line for line in life if first in line and "a message was delivered" in line]) == 1


def _padded(text: str) -> str:
    """As base64 it stands for something, too."""
    return text + "=" * (-len(text) % 4) if len(text) % 4 != 1 else text + "AAA"
