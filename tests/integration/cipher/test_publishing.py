"""A message is stored once, however often it is sent."""

from __future__ import annotations

from tests.cipher_messages import encrypted, written
from tests.integration.cipher.plain_client import PlainClient


def test_a_repeated_message_is_acknowledged_again_and_stored_once(
    client: PlainClient, other: PlainClient, queue: str
) -> None:
    client.make_queue(queue)
    message = encrypted()
    client.publish(queue, message, message)
    other.publish(queue, message)
    other.publish_batch(queue, [message, message])

    assert [client.fetch(queue), client.fetch(queue)] == [message, None]


def test_repeats_within_a_batch_are_acknowledged_each_and_stored_once(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    first, second, third = encrypted(), encrypted(), encrypted()
    client.publish(queue, second)
    client.publish_batch(queue, [first, second, first, third, first])

    assert [client.fetch(queue) for _ in range(4)] == [second, first, third, None]


def test_a_message_that_was_consumed_does_not_come_back_when_it_is_sent_again(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    message = encrypted()
    client.publish(queue, message)
    assert client.fetch(queue) == message
    client.ack(message["message_id"])
    client.publish(queue, message)

    assert client.fetch(queue) is None


def test_a_batch_with_one_wrong_message_is_refused_as_a_whole(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted(), {**encrypted(), "ciphertext": "***"}, encrypted()]
    reply = client.ask(f"publish_batch {queue}-exchange key {written(messages)}")

    assert reply == "Error: message refused: batch[1].ciphertext is not base64"
    assert client.fetch(queue) is None


def test_messages_wait_for_a_queue_that_was_bound_and_not_declared(client: PlainClient, queue: str) -> None:
    assert client.ask(f"declare_exchange {queue}-exchange") == "Exchange declared"
    assert client.ask(f"bind {queue} {queue}-exchange key") == "Queue bound"
    message = encrypted()
    client.publish(queue, message)

    assert client.fetch(queue) == message


def test_senders_on_many_connections_do_not_mix(client: PlainClient, address: str, queue: str) -> None:
    client.make_queue(queue)
    senders = [PlainClient(address) for _ in range(8)]
    messages = [[encrypted() for _ in range(20)] for _ in senders]
    for turn in range(20):
        for sender, own in zip(senders, messages, strict=True):
            sender.send(f"publish {queue}-exchange key {written(own[turn])}")
    for sender, own in zip(senders, messages, strict=True):
        assert sender.lines(20) == [f"ACK {message['message_id']}" for message in own]
        sender.close()
    client.consume(queue)
    found = [message["message_id"] for message in client.messages(160)]

    assert sorted(found) == sorted(message["message_id"] for own in messages for message in own)
