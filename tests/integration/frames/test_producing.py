"""What a producer may rely on: its order, what is stored when its connection ends, and what it is told."""

from __future__ import annotations

import json

import pytest

from sealane.message import Limits
from sealane.node import NodeSettings
from tests.frames_node import FramesNode, frames_node, on_a_thread
from tests.integration.frames.plain import Plain, numbered, numbers


def stored(node: FramesNode, topic: str = "default/frames") -> list[bytes]:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        while parts := await node.node.browse(topic, 0, len(found)):
            found += [payload for part in parts for payload in part.batch.payloads()]
        return found

    return node.do(read())


def test_all_frames_of_a_producer_that_closes_at_once_are_stored(queue: FramesNode) -> None:
    for round_ in range(10):
        with Plain.producer(queue.address) as producer:
            producer.send(*numbered(100, start=100 * round_))
        queue.wait_stored(100 * (round_ + 1))
    assert numbers(stored(queue)) == list(range(1_000))


def test_whoever_waits_for_the_end_knows_that_all_is_stored(queue: FramesNode) -> None:
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(5_000))
        assert producer.done() is None
        assert queue.stored() == 5_000, "without a wait"


def test_a_producer_may_say_nothing_at_all(queue: FramesNode) -> None:
    with Plain.producer(queue.address) as producer:
        assert producer.done() is None
    with Plain(queue.address) as nobody:
        assert nobody.done() is None


def test_a_last_frame_that_is_cut_off_is_told_and_not_stored(queue: FramesNode) -> None:
    with Plain.producer(queue.address) as producer:
        producer.send(b"1", b"2")
        producer.socket.sendall(b"\x00\x00\x00\x05ha")
        said = producer.done()
    assert said is not None
    assert b"the last frame is cut off" in said
    assert b"2 frames of this connection are stored" in said
    assert stored(queue) == [b"1", b"2"]


def test_a_frame_at_the_limit_is_taken_and_one_beyond_it_is_refused_by_its_length() -> None:
    with on_a_thread(frames_node(frame_bytes_max=1_000)) as node:
        with Plain.producer(node.address) as producer:
            producer.send(b"x" * 1_000)
            producer.socket.sendall((1_001).to_bytes(4, "big"))
            said = producer.receive()
            assert said is not None
            assert b"frame is 1,001 bytes, the limit is 1,000" in said
            assert b"doors.frames.frame_bytes_max" in said
            assert b"1 frames of this connection are stored" in said
            assert producer.receive() is None
        assert stored(node) == [b"x" * 1_000]


def test_the_limit_of_the_node_holds_too() -> None:
    settings = NodeSettings(limits=Limits(payload_bytes_max=10))
    with on_a_thread(frames_node(settings=settings)) as node, Plain.producer(node.address) as producer:
        producer.send(b"x" * 10, b"y" * 11, b"z")
        said = producer.done()
        assert said is not None
        assert b"limits.payload_bytes_max" in said
        assert stored(node) == [b"x" * 10]


@pytest.mark.parametrize("limits", [Limits(batch_messages_max=3), Limits(batch_bytes_max=1_000, payload_bytes_max=500)])
def test_more_than_a_batch_may_have_becomes_several(limits: Limits) -> None:
    with on_a_thread(frames_node(settings=NodeSettings(limits=limits))) as node, Plain.producer(node.address) as one:
        one.send(*numbered(100))
        assert one.done() is None
        assert numbers(stored(node)) == list(range(100))


def test_a_frame_of_the_largest_size_is_taken(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer, Plain.producer(queue.address) as producer:
        producer.send(*numbered(20, length=1 << 20))
        assert numbers(consumer.take(20)) == list(range(20))


def test_a_frame_that_does_not_fit_the_schema_is_told_and_those_before_it_are_stored(queue: FramesNode) -> None:
    queue.create_topic()
    schema = json.dumps({"type": "integer"})
    queue.with_lane(lambda lane: lane.administer("schema.register", topic="frames", schema=schema, format="json"))
    with Plain.producer(queue.address) as producer:
        producer.send(b"1", b"2", b'"three"', b"4")
        said = producer.done()
    assert said is not None
    assert b"does not fit version 1 of the schema" in said
    assert b"2 frames of this connection are stored" in said
    assert stored(queue) == [b"1", b"2"]


def test_producers_that_send_at_once_keep_their_own_order(queue: FramesNode) -> None:
    producers = [Plain.producer(queue.address) for _ in range(8)]
    for round_ in range(20):
        for which, producer in enumerate(producers):
            producer.send(*(b"%d:%d" % (which, 10 * round_ + place) for place in range(10)))
    assert [producer.done() for producer in producers] == [None] * 8
    for which in range(8):
        own = [payload for payload in stored(queue) if payload.startswith(b"%d:" % which)]
        assert own == [b"%d:%d" % (which, place) for place in range(200)]
    for producer in producers:
        producer.close()


def test_another_topic_and_another_domain_may_be_chosen() -> None:
    with on_a_thread(frames_node(mode="queue", topic="orders", domain="shop", subscription="till")) as node:
        with Plain.producer(node.address) as producer, Plain.consumer(node.address) as consumer:
            producer.send(b"1")
            assert consumer.take(1) == [b"1"]
        assert stored(node, "shop/orders") == [b"1"]
        assert "till" in node.node.topics["shop/orders"].owners[0].core.subscriptions
