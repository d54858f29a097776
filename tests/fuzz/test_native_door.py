"""Spoiled conversations over real sockets: neither the node nor a neighbour notices anything."""

from __future__ import annotations

import asyncio
import random

from sealane.wire import messages as wire
from tests.fuzz.conversation import HELLO, spoiled
from tests.fuzz.targets.native import understood
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer

CONVERSATIONS = 320
AT_ONCE = 8


async def test_spoiled_conversations_harm_neither_the_node_nor_a_neighbour() -> None:
    choose = random.Random(1)
    async with running_node() as running:
        neighbour = await Peer.enter(running.address)
        for _ in range(CONVERSATIONS // AT_ONCE):
            said = [spoiled(choose) for _ in range(AT_ONCE)]
            await asyncio.gather(*(_converse(running, data, choose.random()) for data in said))
            answer = await neighbour.publish("neighbour", b"still here")
            assert isinstance(answer, wire.Published), (answer, [data.hex() for data in said])
        await eventually(lambda: running.door.connections == 1 and running.door.consumers == 0)
        await eventually(lambda: not any(topic.attachments for topic in running.node.topics.values()))
        await neighbour.close()


def test_most_of_a_spoiled_conversation_is_understood() -> None:
    choose = random.Random(1)
    assert sum(understood(spoiled(choose))[0] for _ in range(1_500)) > 1_500


async def _converse(running: Running, data: bytes, patience: float) -> None:
    """Say it, in two pieces; wait for the node to close, or be the one who goes without a word."""
    host, port = running.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    cut = int(len(data) * patience)
    try:
        writer.write(HELLO)
        await reader.read(1)
        writer.write(data[:cut])
        await writer.drain()
        writer.write(data[cut:])
        if patience < 0.7:
            writer.write_eof()
            async with asyncio.timeout(60):
                while await reader.read(65_536):
                    pass
    except OSError:
        pass  # The node has closed it already.
    finally:
        writer.transport.abort()
