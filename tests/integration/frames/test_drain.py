"""How the door opens and closes: what was received is stored, what is written is settled, the rest is for others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sealane.doors.frames.door import FramesDoor
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.errors import PortTaken
from sealane.node.gate import Gate, everyone_is_admin
from tests.frames_node import DEADLINE_SECONDS, FramesNode, frames_node, on_a_thread
from tests.integration.frames.plain import Plain, numbered, numbers
from tests.integration.grpc.test_sending import slow_engine
from tests.integration.native.slow_disk import SlowFiles


@asynccontextmanager
async def node_on(disk: SlowFiles) -> AsyncIterator[FramesNode]:
    async with frames_node(engine=await slow_engine(disk), mode="queue") as node:
        yield node


def test_what_was_received_is_stored_before_the_connection_is_closed(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    with on_a_thread(node_on(disk)) as node, Plain.producer(node.address) as producer:
        producer.send(b"the topic is there")
        node.wait_stored(1)
        disk.goes_on.clear()
        try:
            producer.send(*numbered(1_000))
            node.eventually(lambda: node.door.budget.in_flight_bytes > 1_000 * 64)
            assert node.loop is not None
            draining = asyncio.run_coroutine_threadsafe(node.door.drain(DEADLINE_SECONDS), node.loop)
            node.eventually(lambda: node.door.draining)
            assert node.door.connections == 1
        finally:
            disk.goes_on.set()
        draining.result(DEADLINE_SECONDS)
        assert node.stored() == 1_001
        with pytest.raises(ConnectionError):
            Plain(node.address)


def test_a_topic_that_stays_full_keeps_the_node_no_longer_than_it_may_take(
    queue: FramesNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealane.doors.stream_door.CLOSE_SECONDS_MAX", 0.05)
    queue.create_topic(messages_max=10)
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(100))
        queue.wait_stored(10)
        queue.do(queue.door.drain(0.05))
        assert queue.door.connections == 1
        queue.do(queue.door.close())
    assert queue.door.connections == 0
    assert queue.stored() == 10


def test_a_consumer_gets_what_is_on_its_way_and_the_rest_is_kept(queue: FramesNode) -> None:
    count = 2_000
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(count, length=10_000))
        assert producer.done() is None
    with Plain.consumer(queue.address, receive_buffer_bytes=8_192) as consumer:
        topic = queue.node.topics["default/frames"]
        queue.eventually(lambda: any(each.consumer.paused for each in topic.attachments.values()))
        assert queue.loop is not None
        draining = asyncio.run_coroutine_threadsafe(queue.door.drain(DEADLINE_SECONDS), queue.loop)
        taken = numbers(consumer)
        draining.result(DEADLINE_SECONDS)
    assert taken == list(range(len(taken)))
    assert 0 < len(taken) < count
    queue.eventually(lambda: queue.unsettled() == count - len(taken))


def test_those_who_are_not_in_yet_and_those_who_are_idle_are_let_go(queue: FramesNode) -> None:
    opened = [Plain(queue.address), Plain.producer(queue.address), Plain.consumer(queue.address)]
    queue.wait_consumers(1)
    queue.eventually(lambda: queue.door.connections == 3)
    queue.do(queue.door.drain(DEADLINE_SECONDS))
    assert queue.door.connections == 0
    for each in opened:
        assert list(each) == []
        each.close()


def test_closing_cuts_off_whoever_is_left_and_may_be_repeated(queue: FramesNode) -> None:
    with Plain.consumer(queue.address) as consumer:
        queue.wait_consumers(1)
        queue.do(queue.door.close())
        queue.do(queue.door.close())
        assert list(consumer) == []
    assert queue.consumers() == 0


def test_a_taken_port_is_named_with_its_setting(queue: FramesNode) -> None:
    port = int(queue.address.rpartition(":")[2])
    gate = Gate(queue.node, everyone_is_admin)

    async def open_another() -> None:
        other = FramesDoor(gate, FramesDoorSettings(port=port))
        try:
            await other.start()
        finally:
            await other.close()

    with pytest.raises(PortTaken, match=r"doors\.frames\.port"):
        queue.do(open_another())


def test_a_crowd_that_comes_and_goes_leaves_nothing_behind(queue: FramesNode) -> None:
    def come_and_go() -> None:
        for number in range(20):
            with Plain(queue.address) as opened:
                opened.socket.sendall([b"", b"\x00", b"\x00\x00\x00\x08PRODUCER\x00\x00\x00\x01x"][number % 3])
                if number % 2:
                    opened.socket.shutdown(socket.SHUT_WR)

    crowd = [threading.Thread(target=come_and_go) for _ in range(5)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    queue.eventually(lambda: queue.door.connections == 0)
    assert queue.look(lambda: queue.door.budget.in_flight_bytes) == 0
    assert len(queue.node.entrances) == 0
