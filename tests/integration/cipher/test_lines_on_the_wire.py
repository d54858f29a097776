"""Lines come in pieces, several at once, far too long, or in another language."""

from __future__ import annotations

import random
import socket

import pytest

from tests.cipher_messages import encrypted, written
from tests.integration.cipher.conftest import SMALL_LINE_BYTES
from tests.integration.cipher.plain_client import PlainClient


def test_commands_come_byte_by_byte(client: PlainClient, queue: str) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in f"declare_queue {queue}\nfetch {queue}\n".encode():
        client.socket.sendall(bytes([byte]))

    assert client.lines(2) == ["Queue declared", f"No message in {queue}"]


def test_several_commands_in_one_packet_are_answered_in_their_order(client: PlainClient, queue: str) -> None:
    first, second, third = encrypted(), encrypted(), encrypted()
    client.send(
        f"declare_queue {queue}",
        f"declare_exchange {queue}-x",
        "nonsense",
        f"bind {queue} {queue}-x a",
        f"bind {queue} {queue}-x b",
        f"publish {queue}-x a {written(first)}",
        f"publish {queue}-x a {written(second)}",
        f"publish {queue}-x b {written(third)}",
        "ack unknown",
        f"fetch {queue}",
        f"ack {first['message_id']}",
        f"ack {second['message_id']}",
        f"declare_queue {queue}",
    )

    replies = client.lines(13)
    assert replies[:2] == ["Queue declared", "Exchange declared"]
    assert replies[2].startswith("Error: command: there is no 'nonsense'")
    assert replies[3:5] == ["Queue bound", "Queue bound"]
    assert replies[5:8] == [f"ACK {message['message_id']}" for message in (first, second, third)]
    assert replies[8].startswith("Error: ack: unknown is not held")
    assert replies[9] == f"Message: {first['message_id']} {written(first)}"
    assert replies[10] == f"ACK_CONFIRMED {first['message_id']}"
    assert replies[11].startswith(f"Error: ack: {second['message_id']} is not held")
    assert replies[12] == "Queue declared"


def test_of_publishes_in_one_packet_only_the_wrong_ones_are_refused(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    good = [encrypted() for _ in range(4)]
    too_large = encrypted(ciphertext_bytes=1 << 20)  # In base64 it is more than a payload may have.
    said = [good[0], good[1], {"message_id": "no"}, good[2], too_large, good[3]]
    client.send(*(f"publish {queue}-exchange key {written(message)}" for message in said))

    replies = client.lines(6)
    wrong = {2: "missing required field", 4: "the limit is 1,048,576"}
    for index, (message, reply) in enumerate(zip(said, replies, strict=True)):
        if index in wrong:
            assert reply.startswith("Error: ")
            assert wrong[index] in reply
        else:
            assert reply == f"ACK {message['message_id']}"
    assert [client.fetch(queue) for _ in range(5)] == [*good, None]


def test_a_conversation_cut_anywhere_is_the_same_conversation(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(200)]
    said = "".join(f"publish {queue}-exchange key {written(message)}\r\n" for message in messages).encode()
    cuts = sorted(random.Random(7).sample(range(len(said)), 500))
    for start, stop in zip([0, *cuts], [*cuts, len(said)], strict=True):
        client.socket.sendall(said[start:stop])

    assert client.lines(200) == [f"ACK {message['message_id']}" for message in messages]


def test_a_batch_of_hundreds_is_acknowledged_one_by_one(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(900)]
    client.publish_batch(queue, messages)
    client.consume(queue)

    assert client.messages(900) == messages


def test_a_line_of_megabytes_is_one_command(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted(ciphertext_bytes=512 << 10) for _ in range(9)]
    assert len(written(messages)) > 6 << 20
    client.publish_batch(queue, messages)

    assert client.fetch(queue) == messages[0]


def test_a_batch_that_is_too_large_is_refused_as_a_whole(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted(ciphertext_bytes=700 << 10) for _ in range(9)]
    reply = client.ask(f"publish_batch {queue}-exchange key {written(messages)}")

    assert reply.startswith("Error: message refused: batch is ")
    assert "limits.batch_bytes_max" in reply
    assert client.fetch(queue) is None


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_heard(tight: PlainClient, queue: str) -> None:
    long = f"declare_queue {'x' * SMALL_LINE_BYTES}"
    tight.send(long, f"declare_queue {queue}")
    too_long, declared = tight.lines(2)

    assert too_long.startswith(f"Error: line: is longer than {SMALL_LINE_BYTES:,} bytes")
    assert "doors.cipher.line_bytes_max" in too_long
    assert declared == "Queue declared"


def test_a_line_may_be_as_long_as_the_setting_says(tight: PlainClient) -> None:
    name = "x" * (SMALL_LINE_BYTES - len("declare_queue "))

    assert "the limit is 128" in tight.ask(f"declare_queue {name}")
    assert "is longer than" in tight.ask(f"declare_queue {name}x")


def test_whoever_has_said_all_still_hears_the_answers(client: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    messages = [encrypted() for _ in range(20)]
    client.send(*(f"publish {queue}-exchange key {written(message)}" for message in messages), f"fetch {queue}")
    client.socket.shutdown(socket.SHUT_WR)

    assert client.rest() == "".join(f"ACK {message['message_id']}\n" for message in messages) + (
        f"Message: {messages[0]['message_id']} {written(messages[0])}\n"
    )


def test_a_last_line_without_an_end_is_not_carried_out(client: PlainClient, other: PlainClient, queue: str) -> None:
    client.make_queue(queue)
    client.socket.sendall(f"publish {queue}-exchange key {written(encrypted())}".encode())
    client.socket.shutdown(socket.SHUT_WR)

    assert client.rest() == "Error: line: the last one has no end, a line feed, and was not carried out\n"
    assert other.fetch(queue) is None


@pytest.mark.parametrize(
    ("said", "language"),
    [
        (b"POST /publish HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\ndeclare_queue %b\r\n", "HTTP"),
        (b"\r\nGET / HTTP/1.1\r\ndeclare_queue %b\r\n", "HTTP"),
        (b"AMQP\x00\x00\x09\x01 \ndeclare_queue %b\n", "AMQP"),
        (b"\x16\x03\x01\x02\x00 \ndeclare_queue %b\n", "TLS"),
    ],
)
def test_those_who_speak_another_protocol_are_told_so_and_heard_no_further(
    client: PlainClient, other: PlainClient, queue: str, said: bytes, language: str
) -> None:
    client.socket.sendall(said.replace(b"%b", queue.encode()))
    reply = client.rest()

    assert reply.startswith("Error: protocol: this door speaks CipherMQ's protocol")
    assert reply.endswith(f"and not {language}\n")
    assert reply.count("\n") == 1
