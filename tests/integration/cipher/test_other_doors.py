"""What comes in by this door goes out by others, and the other way round."""

from __future__ import annotations

import base64
import json
import uuid

import sealane
from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.integration.cipher.plain_client import PlainClient


async def test_a_message_of_a_sender_is_its_json_for_everyone_else(
    node: NodeProcess, client: PlainClient, queue: str
) -> None:
    client.make_queue(queue)
    messages = [encrypted(), encrypted("order-1")]
    client.publish(queue, *messages)
    async with sealane.connect(node.url) as lane:
        taken = []
        async for message in lane.consume(queue, subscription="others"):
            taken.append(message)
            await message.ack()
            if len(taken) == 2:
                break

    assert [message.payload.decode() for message in taken] == [written(message) for message in messages]
    assert taken[0].id == uuid.UUID(messages[0]["message_id"])
    assert client.fetch(queue) == messages[0]  # Another subscription has taken nothing away.


async def test_a_message_that_another_door_took_in_such_a_json_is_one_like_all_others(
    node: NodeProcess, client: PlainClient, queue: str
) -> None:
    client.consume(queue)
    message = encrypted()
    async with sealane.connect(node.url) as lane:
        await lane.publish(queue, written(message).encode())
        assert client.message() == message
        await lane.publish(queue, json.dumps(message, indent=2).encode())

        assert client.line() == f"Message: {message['message_id']} {json.dumps(message, separators=(',', ':'))}"
    client.ack(message["message_id"])
    assert client.fetch(queue) is None


async def test_what_is_no_such_json_comes_in_base64_under_its_own_id(
    node: NodeProcess, client: PlainClient, queue: str
) -> None:
    client.consume(queue)
    payloads = [b"", b"hello\n", b"\xff\x00", b'{"message_id": "a b"}', written({**encrypted(), "tag": "?"}).encode()]
    async with sealane.connect(node.url) as lane:
        for payload in payloads:
            receipt = await lane.publish(queue, payload)
            found = client.message()
            assert found == {
                "message_id": str(receipt.id),
                "payload_base64": base64.b64encode(payload).decode(),
            }
            client.ack(found["message_id"])
            client.ack(found["message_id"])  # Asked again, although its id was not given by its publisher.


async def test_an_exchange_of_another_kind_is_not_taken_for_a_direct_one(
    node: NodeProcess, client: PlainClient, queue: str
) -> None:
    async with sealane.connect(node.url) as lane:
        await lane.declare_exchange(f"{queue}-x", "fanout")

    reply = client.ask(f"declare_exchange {queue}-x")
    assert reply == f"Error: exchange 'default/{queue}-x' already exists: its kind is fanout, not direct"


async def test_a_full_queue_is_told_to_the_sender(node: NodeProcess, client: PlainClient, queue: str) -> None:
    async with sealane.connect(node.url) as lane:
        await lane.create_topic(queue, messages_max=2)
    client.make_queue(queue)
    client.publish(queue, encrypted(), encrypted())

    reply = client.ask(f"publish {queue}-exchange key {written(encrypted())}")
    assert reply.startswith(f"Error: topic 'default/{queue}' is full: 2 unsettled messages, the limit is 2")
