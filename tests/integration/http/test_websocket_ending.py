"""How WebSockets end when their node does: with a word, after what was begun, and soon."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from websockets.frames import Frame, Opcode

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.doors.http.websocket import conversations as bounds
from tests.http_node import HttpNode
from tests.integration.http.raw_socket import opening, raw_socket
from tests.integration.http.socket_client import DEADLINE_SECONDS, Refused, open_socket
from tests.integration.http.test_websocket_bounds import say, until


async def test_a_node_that_stops_says_so(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.subscribe("t", credit=1)
        draining = asyncio.create_task(node.door.drain(DEADLINE_SECONDS))
        await socket.news("draining")
        assert (await socket.closed())[0] == 1001
        await draining


async def test_what_was_handed_over_can_still_be_answered_for(node: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "DRAIN_SECONDS_MAX", DEADLINE_SECONDS)
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", "b")
        consumer = await socket.subscribe("t", credit=1)
        delivery = await socket.news("deliver")
        draining = asyncio.create_task(node.door.drain(2 * DEADLINE_SECONDS))
        await socket.news("draining")
        with pytest.raises(Refused, match="about to stop"):
            await socket.publish("t", "c")
        with pytest.raises(Refused, match="about to stop"):
            await socket.subscribe("t")
        await socket.call("credit", consumer=consumer, messages=5)
        await socket.call("ack", consumer=consumer, delivery=delivery["delivery"])
        assert (await socket.closed())[0] == 1001
        await draining
    assert node.node.topic("t").owners[0].core.subscription("s").settled.floor == 1


async def test_what_is_not_answered_for_goes_back_without_an_attempt(
    node: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "DRAIN_SECONDS_MAX", 0.05)
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        await socket.subscribe("t", credit=1)
        await socket.messages(1)
        await asyncio.gather(node.door.drain(DEADLINE_SECONDS), socket.closed())
    subscription = node.node.topic("t").owners[0].core.subscription("s")
    await until(lambda: not subscription.leases.outstanding)
    assert not subscription.attempts.levels


async def test_draining_does_not_wait_for_who_does_not_listen(node: HttpNode) -> None:
    await node.publish("t", *["x" * 100_000] * 80)
    async with raw_socket(node.door, receive_bytes=16 << 10) as raw:
        say(raw, "subscribe", topic="t", subscription="s", credit=1_000)
        [connection] = node.door._conversations._connections
        await until(lambda: connection._writing_paused)
        began = time.monotonic()
        await node.door.drain(1.0)
        await node.door.close()
        assert time.monotonic() - began < DEADLINE_SECONDS
    assert not len(node.door._conversations)


async def test_a_door_that_closes_at_once_says_so_too(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        await socket.subscribe("t", credit=1)
        await socket.messages(1)
        await node.door.close()
        assert (await socket.closed())[0] == 1001
        # What its consumers held has gone back by now: the node may be closed.
        assert not node.node.topic("t").owners[0].core.subscription("s").leases.outstanding


async def test_before_there_is_a_node_nobody_is_upgraded() -> None:
    door = HttpDoor(HttpDoorSettings(port=0), Watched(lambda: True, list, lambda: (b"", "text/plain")))
    await door.start()
    try:
        status, body = await opening(door)
    finally:
        await door.close()
    assert status == 503
    assert "starting" in body


async def test_a_client_that_says_goodbye_is_answered(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.connection.close(4_000, "enough")
        assert await socket.closed() == (4_000, "enough")
    await until(lambda: node.door.connections == 0)


async def test_what_comes_together_with_the_last_word_was_said_before_it(node: HttpNode) -> None:
    async with raw_socket(node.door) as raw:
        publish = Frame(
            Opcode.TEXT, json.dumps({"type": "publish", "topic": "t", "messages": [{"payload": "a"}]}).encode()
        )
        goodbye = Frame(Opcode.CLOSE, (1_000).to_bytes(2, "big"))
        raw.writer.write(publish.serialize(mask=True) + goodbye.serialize(mask=True))
        assert (await raw.closed())[0] == 1_000
    await until(lambda: "default/t" in node.node.topics and node.node.topic("t").owners[0].core.visible == 1)
