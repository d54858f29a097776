"""Queue mode: each message goes to one consumer, in the order in which it came."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.node.attachment import Attachment
from sealane.node.session import Session
from sealane.security.principals import ADMIN
from tests.frames_node import FramesNode, frames_node, on_a_thread
from tests.integration.frames.plain import Plain, numbered, numbers


def test_a_consumer_gets_what_a_producer_sends_in_its_order(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer, Plain.producer(queue.address) as producer:
        producer.send(*numbered(1_000))
        producer.send(*numbered(1_000, start=1_000, length=1_000))
        assert numbers(consumer.take(2_000)) == list(range(2_000))


def test_messages_wait_for_a_consumer(queue: FramesNode) -> None:
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(100))
        queue.wait_stored(100)
    with Plain.consumer(queue.address) as consumer:
        assert numbers(consumer.take(100)) == list(range(100))
        queue.eventually(lambda: queue.unsettled() == 0)


def test_an_empty_frame_is_a_message_without_a_byte(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer, Plain.producer(queue.address) as producer:
        producer.send(b"", b"between", b"")
        assert consumer.take(3) == [b"", b"between", b""]


def test_a_frame_may_have_any_bytes_and_come_in_any_pieces(queue: FramesNode) -> None:
    payload = bytes(range(256)) * 2_000
    with Plain.consumer(queue.address) as consumer, Plain.producer(queue.address) as producer:
        whole = len(payload).to_bytes(4, "big") + payload
        for piece in (whole[:1], whole[1:3], whole[3:4], whole[4:100_000], whole[100_000:]):
            producer.socket.sendall(piece)
        assert consumer.receive() == payload


def test_of_many_consumers_each_message_reaches_one(queue: FramesNode) -> None:
    consumers = [Plain.consumer(queue.address) for _ in range(10)]
    queue.wait_consumers(10)
    count = 20_000
    shares: list[list[int]] = [[] for _ in consumers]
    readers = [
        threading.Thread(target=lambda share, each: share.extend(numbers(each)), args=(share, each))
        for share, each in zip(shares, consumers, strict=True)
    ]
    for reader in readers:
        reader.start()
    with Plain.producer(queue.address) as producer:
        for start in range(0, count, 1_000):
            producer.send(*numbered(1_000, start=start))
        assert producer.done() is None
    queue.eventually(lambda: queue.unsettled() == 0)
    queue.do(queue.door.drain(5))
    for reader in readers:
        reader.join()
    assert sorted(number for share in shares for number in share) == list(range(count))
    assert all(share for share in shares), "everyone has had some"
    assert all(share == sorted(share) for share in shares), "each has its own in order"
    for consumer in consumers:
        consumer.close()


def test_a_small_burst_is_not_for_one_consumer_alone(queue: FramesNode) -> None:
    with (
        Plain.consumer(queue.address) as one,
        Plain.consumer(queue.address) as other,
        Plain.producer(queue.address) as producer,
    ):
        queue.wait_consumers(2)
        producer.send(*numbered(64))
        assert sorted(numbers(one.take(32) + other.take(32))) == list(range(64))


def test_what_a_broken_connection_had_not_taken_goes_to_the_next_in_order(queue: FramesNode) -> None:
    count = 2_000
    dying, taken = _stuck(queue, count)
    with Plain.consumer(queue.address) as waiting:
        queue.wait_consumers(2)
        dying.reset()
        received = numbers(waiting.take(count - taken))
        assert sorted(received) == list(range(taken, count)), "all that was not in its socket, each once"
        assert waiting.nothing_comes()
    core = queue.node.topics["default/frames"].owners[0].core
    assert not core.subscription("frames").attempts.levels, "nobody has failed at anything"


def test_if_there_is_nobody_else_the_rest_waits_in_its_order(queue: FramesNode) -> None:
    count = 2_000
    dying, taken = _stuck(queue, count)
    dying.reset()
    queue.wait_consumers(0)
    with Plain.consumer(queue.address) as following:
        assert numbers(following.take(count - taken)) == list(range(taken, count))


def test_a_consumer_that_has_closed_is_given_nothing_more(queue: FramesNode) -> None:
    with Plain.producer(queue.address) as producer:
        for start in range(50):
            with Plain.consumer(queue.address) as consumer:
                queue.wait_consumers(1)
                producer.send(*numbered(1, start=start))
                assert numbers(consumer.take(1)) == [start]
        producer.send(b"50")
        queue.wait_stored(51)
    with Plain.consumer(queue.address) as last:
        assert last.take(1) == [b"50"], "it was not written to someone who had left"


def test_other_doors_share_the_topic(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer:
        queue.wait_consumers(1)
        queue.with_lane(lambda lane: lane.publish("frames", b"by the native door", key=b"k", headers={"a": "b"}))
        assert consumer.take(1) == [b"by the native door"]


def test_a_queue_that_exists_keeps_its_retries(queue: FramesNode) -> None:
    retry = Retry("fixed", 7.0, attempts_max=2)
    queue.do(Session(queue.node, ADMIN).subscribe("frames", "frames", SubscriptionConfig(retry=retry), "earliest"))
    with Plain.producer(queue.address) as producer, Plain.consumer(queue.address) as consumer:
        producer.send(b"x")
        assert consumer.take(1) == [b"x"]
    assert queue.node.topics["default/frames"].groups["frames"].config.retry == retry


def test_a_queue_that_is_kept_in_another_mode_says_so(tmp_path: Path) -> None:
    with on_a_thread(frames_node(tmp_path, mode="queue")) as node, Plain.producer(node.address) as producer:
        producer.send(b"waits")
        assert producer.done() is None
    with on_a_thread(frames_node(tmp_path, mode="broadcast")) as node, Plain.consumer(node.address) as consumer:
        (said,) = list(consumer)
        assert said.startswith(b"ERROR: ")
        assert b"its mode is queue, not broadcast" in said


def test_a_restart_keeps_the_queue(tmp_path: Path) -> None:
    with on_a_thread(frames_node(tmp_path, mode="queue")) as node:
        with Plain.producer(node.address) as producer:
            producer.send(*numbered(100))
            assert producer.done() is None
        with Plain.consumer(node.address) as consumer:
            consumer.take(100)
            node.eventually(lambda: node.unsettled() == 0)
        with Plain.producer(node.address) as producer:
            producer.send(*numbered(100, start=100))
            assert producer.done() is None
    with on_a_thread(frames_node(tmp_path, mode="queue")) as node, Plain.consumer(node.address) as consumer:
        assert numbers(consumer.take(100)) == list(range(100, 200))


@pytest.mark.parametrize("count", [1, 7, 500, 501])
def test_a_consumer_with_little_room_gets_everything_too(count: int) -> None:
    with (
        on_a_thread(frames_node(mode="queue", consumer_buffer_messages=3)) as node,
        Plain.consumer(node.address) as consumer,
        Plain.producer(node.address) as producer,
    ):
        producer.send(*numbered(count))
        assert numbers(consumer.take(count)) == list(range(count))


def _attachments(node: FramesNode) -> list[Attachment]:
    return list(node.node.topics["default/frames"].attachments.values())


def _stuck(queue: FramesNode, count: int) -> tuple[Plain, int]:
    """A consumer that does not read, and how many of `count` messages its socket took. What is on the way there is its
    own too; the rest is untouched.
    """
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(count, length=10_000))
        queue.wait_stored(count)
    stuck = Plain.consumer(queue.address, receive_buffer_bytes=8_192)
    queue.eventually(lambda: [each.consumer.paused for each in _attachments(queue)] == [True])
    queue.eventually(lambda: queue.unsettled() < count)
    return stuck, count - queue.look(queue.unsettled)
