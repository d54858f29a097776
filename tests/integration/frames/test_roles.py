"""The first frame says what a connection is; whatever else it says is refused, in a frame that says why."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from sealane.doors.frames import connection
from tests.frames_node import FramesNode, frames_node, on_a_thread
from tests.integration.frames.plain import Plain, numbered


def refusal(opened: Plain) -> str:
    """The only frame that comes, and behind which the connection ends."""
    (said,) = list(opened)
    assert said.startswith(b"ERROR: ")
    return said.decode()


@pytest.mark.parametrize("said", [b"", b"producer", b"PRODUCER\n", b"ADMIN", b"x" * 64])
def test_a_first_frame_that_is_neither_word_is_refused(queue: FramesNode, said: bytes) -> None:
    with Plain(queue.address) as opened:
        opened.send(said, b"a message")
        assert "first frame must be PRODUCER or CONSUMER" in refusal(opened)


@pytest.mark.parametrize("said", [b"\x00\x00\x00\x41", b"GET / HTTP/1.1\r\nhost: node\r\n\r\n", b"\xff" * 100_000])
def test_a_first_frame_that_is_too_long_is_refused_before_it_has_come(queue: FramesNode, said: bytes) -> None:
    with Plain(queue.address) as opened:
        opened.socket.sendall(said)
        assert "its length is " in refusal(opened)


def test_a_refusal_is_read_also_by_who_goes_on_sending(queue: FramesNode) -> None:
    for _ in range(20):
        with Plain(queue.address) as opened:
            opened.send(b"WRONG", *numbered(100, length=1_000))
            assert "first frame" in refusal(opened)


def test_the_first_frame_may_come_byte_by_byte(queue: FramesNode) -> None:
    with Plain(queue.address) as producer, Plain(queue.address) as consumer:
        for opened, word in ((producer, b"PRODUCER"), (consumer, b"CONSUMER")):
            opened.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in len(word).to_bytes(4, "big") + word:
                opened.socket.sendall(bytes([byte]))
        producer.send(b"x")
        assert consumer.take(1) == [b"x"]


def test_whoever_says_nothing_is_told_to_after_a_while(queue: FramesNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ROLE_SECONDS_MAX", 0.01)
    with Plain(queue.address) as opened:
        assert "it has not come within" in refusal(opened)


@pytest.fixture
def hasty() -> Iterator[FramesNode]:
    with on_a_thread(frames_node(mode="queue", receive_seconds_max=0.01)) as node:
        yield node


@pytest.mark.parametrize("begun", [b"\x00", b"\x00\x00\x00\x08PROD"])
def test_a_first_frame_that_never_comes_whole_has_an_end(hasty: FramesNode, begun: bytes) -> None:
    with Plain(hasty.address) as opened:
        opened.socket.sendall(begun)
        assert "doors.frames.receive_seconds_max" in refusal(opened)


def test_a_frame_that_never_comes_whole_has_an_end_and_those_before_it_are_stored(hasty: FramesNode) -> None:
    with Plain.producer(hasty.address) as producer:
        producer.send(b"whole")
        hasty.wait_stored(1)
        producer.socket.sendall(b"\x00\x00\x00\x05ha")
        said = refusal(producer)
        assert "doors.frames.receive_seconds_max" in said
        assert "1 frames of this connection are stored" in said


def test_one_consumer_too_many_is_told_so(broadcast: FramesNode) -> None:
    consumers = [Plain.consumer(broadcast.address) for _ in range(10)]
    with Plain.consumer(broadcast.address) as too_many:
        said = refusal(too_many)
    assert "10 connections of consumers are open" in said
    assert "doors.frames.consumers_max" in said
    assert "MAX_CONSUMERS" in said
    with Plain.producer(broadcast.address) as producer:
        producer.send(b"x")
        assert [consumer.receive() for consumer in consumers] == [b"x"] * 10, "nobody else has noticed"
        consumers.pop().close()
        broadcast.wait_consumers(9)
        with Plain.consumer(broadcast.address) as again:
            broadcast.wait_consumers(10)
            producer.send(b"y")
            assert again.receive() == b"y"
    for consumer in consumers:
        consumer.close()


def test_connections_have_a_limit_too() -> None:
    with (
        on_a_thread(frames_node(connections_max=2)) as node,
        Plain.producer(node.address),
        Plain.producer(node.address),
    ):
        node.eventually(lambda: node.door.connections == 2)
        with Plain.producer(node.address) as third:
            assert "doors.frames.connections_max" in refusal(third)


def test_what_a_consumer_says_is_not_listened_to(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer, Plain.producer(queue.address) as producer:
        consumer.send(b"ACK", b"x" * 1_000_000)
        consumer.socket.sendall(b"\xff\xff\xff\xff and no frame at all")
        producer.send(b"x")
        assert consumer.take(1) == [b"x"]
        queue.wait_stored(1)


def test_a_consumer_of_a_topic_that_is_deleted_is_told_and_may_come_again(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer:
        queue.wait_consumers(1)
        queue.with_lane(lambda lane: lane.delete_topic("frames"))
        assert "default/frames" in refusal(consumer)
    with Plain.consumer(queue.address) as again, Plain.producer(queue.address) as producer:
        producer.send(b"anew")
        assert again.take(1) == [b"anew"]


def test_a_consumer_that_closes_its_sending_side_has_gone(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer:
        queue.wait_consumers(1)
        assert consumer.done() is None
    queue.wait_consumers(0)
    with Plain.producer(queue.address) as producer, Plain.consumer(queue.address) as another:
        producer.send(b"x")
        assert another.take(1) == [b"x"]


def test_a_machine_that_is_gone_is_found_out_within_a_minute(queue: FramesNode) -> None:
    def options() -> list[int]:
        (opened,) = queue.door._connections
        found = opened.transport.get_extra_info("socket")
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_NODELAY)
        return [
            found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            *(found.getsockopt(socket.IPPROTO_TCP, name) for name in names),
        ]

    with Plain.consumer(queue.address):
        queue.wait_consumers(1)
        assert queue.look(options) == [1, 30, 10, 3, 1]
