"""Broadcast mode: every consumer gets each message that comes while it is there."""

from __future__ import annotations

import threading

from tests.frames_node import FramesNode
from tests.integration.frames.plain import Plain, numbered, numbers


def test_every_consumer_gets_each_message_in_its_order(broadcast: FramesNode) -> None:
    consumers = [Plain.consumer(broadcast.address) for _ in range(10)]
    with Plain.producer(broadcast.address) as producer:
        producer.send(*numbered(1_000))
        for consumer in consumers:
            with consumer:
                assert numbers(consumer.take(1_000)) == list(range(1_000))


def test_whoever_connects_before_a_producer_misses_nothing_of_it(broadcast: FramesNode) -> None:
    """There is no answer to wait for, and no need of one: connections are taken in their order."""
    for round_ in range(100):
        with Plain.consumer(broadcast.address) as consumer, Plain.producer(broadcast.address) as producer:
            producer.send(b"%d" % round_)
            assert consumer.receive() == b"%d" % round_
        broadcast.wait_consumers(0)


def test_what_came_before_a_consumer_is_not_for_it(broadcast: FramesNode) -> None:
    with Plain.producer(broadcast.address) as producer:
        producer.send(*numbered(10))
        broadcast.wait_stored(10)
        with Plain.consumer(broadcast.address) as consumer:
            broadcast.wait_consumers(1)
            producer.send(b"10")
            assert consumer.take(1) == [b"10"]


def test_a_slow_consumer_slows_nobody_and_loses_nothing(broadcast: FramesNode) -> None:
    count, length = 3_000, 10_000
    with (
        Plain.consumer(broadcast.address, receive_buffer_bytes=8_192) as slow,
        Plain.consumer(broadcast.address) as quick,
        Plain.producer(broadcast.address) as producer,
    ):
        broadcast.wait_consumers(2)
        sending = threading.Thread(target=lambda: producer.send(*numbered(count, length=length)))
        sending.start()
        assert numbers(quick.take(count)) == list(range(count))
        sending.join()
        assert numbers(slow.take(count)) == list(range(count))


def test_a_consumer_may_come_and_go_without_a_trace(broadcast: FramesNode) -> None:
    for _ in range(20):
        Plain.consumer(broadcast.address).close()
    with Plain.consumer(broadcast.address) as consumer, Plain.producer(broadcast.address) as producer:
        producer.send(b"x")
        assert consumer.take(1) == [b"x"]
        broadcast.wait_consumers(1)
    broadcast.wait_consumers(0)
    topic = broadcast.node.topics["default/frames"]
    broadcast.eventually(lambda: not topic.owners[0].core.members and not topic.owners[0].dispatchers)
