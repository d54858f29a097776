"""Messages are pushed, acknowledged, and come again until they are."""

from __future__ import annotations

import time

import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from tests.cipher_messages import encrypted, written
from tests.integration.cipher.conftest import SHORT_LEASE_SECONDS, SMALL_WINDOW
from tests.integration.cipher.plain_client import PlainClient, message_of


def test_what_waits_is_pushed_at_once_and_what_comes_later_when_it_comes(
    client: PlainClient, other: PlainClient, queue: str
) -> None:
    client.make_queue(queue)
    before, after = [encrypted() for _ in range(3)], [encrypted() for _ in range(3)]
    client.publish(queue, *before)
    other.consume(queue)
    assert other.messages(3) == before
    for message in after:
        client.publish(queue, message)
        assert other.message() == message


def test_a_client_may_acknowledge_while_messages_keep_arriving(
    client: PlainClient, other: PlainClient, queue: str
) -> None:
    """It takes what comes: a message, which it acknowledges without a wait, or a confirmation."""
    client.make_queue(queue)
    messages = [encrypted() for _ in range(600)]
    other.consume(queue)
    got: list[str] = []
    confirmed: list[str] = []
    for start in range(0, 600, 200):
        client.publish_batch(queue, messages[start : start + 200])
        while len(confirmed) < start + 150:
            _take(other, got, confirmed)
    while len(confirmed) < 600:
        _take(other, got, confirmed)

    assert got == confirmed == [message["message_id"] for message in messages]
    assert client.fetch(queue) is None


def _take(client: PlainClient, got: list[str], confirmed: list[str]) -> None:
    line = client.line()
    if line.startswith("ACK_CONFIRMED "):
        confirmed.append(line.removeprefix("ACK_CONFIRMED "))
        return
    message_id = message_of(line)["message_id"]
    got.append(message_id)
    client.send(f"ack {message_id}")


def test_acks_in_one_packet_are_confirmed_in_their_order(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(50)]
    client.publish_batch(queue, messages)
    client.consume(queue)
    ids = [message["message_id"] for message in client.messages(50)]
    said = [*reversed(ids), "unknown", ids[0]]
    client.send(*(f"ack {message_id}" for message_id in said))
    replies = client.lines(52)

    assert replies[:50] == [f"ACK_CONFIRMED {message_id}" for message_id in reversed(ids)]
    assert replies[50].startswith("Error: ack: unknown")
    assert replies[51] == f"ACK_CONFIRMED {ids[0]}"


def test_two_consumers_share_a_queue(client: PlainClient, address: str, queue: str) -> None:
    client.make_queue(queue)
    with PlainClient(address) as left, PlainClient(address) as right:
        left.consume(queue)
        right.consume(queue)
        messages = [encrypted() for _ in range(40)]
        client.publish(queue, *messages)
        taken = []
        for consumer in (left, right):
            ids = [message["message_id"] for message in consumer.messages(20)]
            for message_id in ids:
                consumer.ack(message_id)
            taken += ids

    assert sorted(taken) == sorted(message["message_id"] for message in messages)


def test_what_a_connection_held_goes_to_others_when_it_ends(
    client: PlainClient, other: PlainClient, address: str, queue: str
) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(5)]
    client.publish(queue, *messages)
    with PlainClient(address) as first:
        first.consume(queue)
        assert first.messages(5) == messages
        first.ack(messages[2]["message_id"])
    other.consume(queue)

    assert other.messages(4) == [messages[0], messages[1], messages[3], messages[4]]


def test_a_fetched_message_goes_to_others_when_its_connection_ends(
    client: PlainClient, address: str, queue: str
) -> None:
    client.make_queue(queue)
    message = encrypted()
    client.publish(queue, message)
    with PlainClient(address) as first:
        assert first.fetch(queue) == message
        assert client.fetch(queue) is None
    client.consume(queue)

    assert client.message() == message


def test_no_more_is_pushed_than_the_window_has_room_for(tight: PlainClient, queue: str) -> None:
    tight.make_queue(queue)
    messages = [encrypted() for _ in range(2 * SMALL_WINDOW)]
    tight.publish(queue, *messages)
    tight.consume(queue)
    assert tight.messages(SMALL_WINDOW) == messages[:SMALL_WINDOW]
    assert tight.ask(f"declare_queue {queue}") == "Queue declared"  # And not the next message.
    tight.send(f"ack {messages[0]['message_id']}")

    assert sorted(tight.lines(2)) == sorted(
        [f"ACK_CONFIRMED {messages[0]['message_id']}", _line_of(messages[SMALL_WINDOW])]
    )


def _line_of(message: dict[str, str]) -> str:
    return f"Message: {message['message_id']} {written(message)}"


def test_a_message_that_is_not_acknowledged_in_time_is_delivered_again(tight: PlainClient, queue: str) -> None:
    tight.make_queue(queue)
    message, other = encrypted(), encrypted()
    tight.publish(queue, message, other)
    tight.consume(queue)
    began = time.monotonic()
    assert tight.messages(2) == [message, other]
    tight.ack(other["message_id"])
    for turn in range(1, 4):
        assert tight.message() == message
        assert time.monotonic() - began > turn * SHORT_LEASE_SECONDS * 0.9
    tight.ack(message["message_id"])
    assert tight.fetch(queue) is None


def test_an_ack_that_comes_late_is_refused_if_somebody_else_has_the_message_by_then(
    tight: PlainClient, tight_node: NodeProcess, queue: str
) -> None:
    tight.make_queue(queue)
    message = encrypted()
    tight.publish(queue, message)
    assert tight.fetch(queue) == message
    with PlainClient(tight_node.doors["cipher"]) as other:
        other.consume(queue)
        assert other.message() == message
        reply = tight.ask(f"ack {message['message_id']}")
        assert reply.startswith(f"Error: ack: {message['message_id']} is not held by this connection")
        other.ack(message["message_id"])
    tight.ack(message["message_id"])  # It is done by now, whoever did it.


def test_an_ack_that_comes_late_is_confirmed_if_the_message_is_here_again(tight: PlainClient, queue: str) -> None:
    tight.make_queue(queue)
    message = encrypted()
    tight.publish(queue, message)
    tight.consume(queue)
    assert tight.messages(2) == [message, message]
    tight.ack(message["message_id"])


def test_whoever_has_not_heard_the_confirmation_may_ask_again_by_another_connection(
    client: PlainClient, other: PlainClient, queue: str
) -> None:
    client.make_queue(queue)
    message = encrypted()
    client.publish(queue, message)
    assert client.fetch(queue) == message
    client.send(f"ack {message['message_id']}", f"ack {message['message_id']}")

    assert client.lines(2) == [f"ACK_CONFIRMED {message['message_id']}"] * 2
    other.ack(message["message_id"])


def test_whoever_consumes_what_they_send_reads_the_reply_first(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    client.consume(queue)
    for _ in range(20):
        message = encrypted()
        client.publish(queue, message)
        assert client.message() == message
        client.ack(message["message_id"])
    batch = [encrypted() for _ in range(20)]
    client.publish_batch(queue, batch)
    assert client.messages(20) == batch


def test_consuming_a_queue_twice_is_consuming_it_once(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    client.consume(queue)
    client.consume(queue)
    message = encrypted()
    client.publish(queue, message)
    assert client.message() == message
    assert client.ask(f"declare_queue {queue}") == "Queue declared"


def test_a_connection_may_consume_several_queues(client: PlainClient, other: PlainClient, queue: str) -> None:
    queues = [f"{queue}-{number}" for number in range(5)]
    for each in queues:
        other.make_queue(each)
        client.consume(each)
    messages = [encrypted() for _ in queues]
    for each, message in zip(queues, messages, strict=True):
        other.publish(each, message)
        assert client.message() == message
    for message in messages:
        client.ack(message["message_id"])


def test_there_is_an_end_to_how_many_queues_a_connection_takes_from(client: PlainClient, queue: str) -> None:
    client.send(*(f"fetch {queue}-{number}" for number in range(101)))
    replies = client.lines(101)

    assert replies[:100] == [f"No message in {queue}-{number}" for number in range(100)]
    assert replies[100] == "Error: queue: this connection takes from 100 already; open another one"


async def test_whoever_consumes_a_queue_that_is_deleted_is_told_and_let_go(
    node: NodeProcess, client: PlainClient, queue: str
) -> None:
    client.make_queue(queue)
    client.consume(queue)
    async with sealane.connect(node.url) as lane:
        await lane.delete_topic(queue)

    assert client.rest() == f"Error: topic 'default/{queue}' does not exist; it was deleted\n"


@pytest.mark.parametrize("count", [1, 30])
def test_what_was_not_acknowledged_comes_before_what_is_new(
    client: PlainClient, other: PlainClient, address: str, queue: str, count: int
) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(count + 1)]
    client.publish(queue, *messages[:count])
    with PlainClient(address) as first:
        first.consume(queue)
        first.messages(count)
    client.publish(queue, messages[count])
    other.consume(queue)

    assert other.messages(count + 1) == messages
