"""A producer that sends more than can be kept is slowed, and nothing is lost; unless its topic is told to drop."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sealane.engine.memory import MemoryEngine
from sealane.node import NodeSettings
from sealane.node.surroundings import wall_clock_us
from sealane.security.quotas.quotas import Quota, Subject
from sealane.security.settings import QuotaSettings, SecuritySettings
from tests.frames_node import FramesNode, frames_node, on_a_thread
from tests.integration.frames.plain import DEADLINE_SECONDS, Plain, numbered, numbers
from tests.integration.grpc.test_sending import slow_engine
from tests.integration.native.slow_disk import SlowFiles

MiB = 1 << 20


class Sending:
    """Frames on their way from a thread of its own, as fast as the node takes them."""

    def __init__(self, producer: Plain, payloads: list[bytes], *, at_once: int = 100) -> None:
        self.sent = 0
        self._producer, self._payloads, self._at_once = producer, payloads, at_once
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while self.sent < len(self._payloads):
            self._producer.send(*self._payloads[self.sent : self.sent + self._at_once])
            self.sent += self._at_once

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> None:
        self._thread.join(DEADLINE_SECONDS)
        assert self.done


def stands_still(count: Callable[[], int]) -> int:
    """What a count is when it does not grow any more."""
    stop = time.monotonic() + DEADLINE_SECONDS
    seen: list[int] = []
    while len(seen) < 20 or len(set(seen[-20:])) > 1:
        assert time.monotonic() < stop, "it never stands still"
        seen.append(count())
        time.sleep(0.01)
    return seen[-1]


def test_a_producer_waits_while_its_topic_is_full_and_nothing_is_lost() -> None:
    payloads = numbered(5_000, length=4_000)  # More than sockets keep.
    with on_a_thread(frames_node(mode="queue", in_flight_bytes_max=MiB)) as node:
        node.create_topic(messages_max=50)
        with Plain.producer(node.address) as producer:
            sending = Sending(producer, payloads)
            node.wait_stored(50)
            assert stands_still(lambda: sending.sent) < len(payloads), "its own socket is full, and it waits"
            assert node.stored() == 50
            assert node.look(lambda: node.door.budget.in_flight_bytes) < 2 * MiB, "the node keeps little of it"
            with Plain.consumer(node.address) as consumer:
                assert consumer.take(len(payloads)) == payloads
            sending.join()


def test_what_was_received_waits_for_room_also_when_its_producer_has_gone(queue: FramesNode) -> None:
    queue.create_topic(messages_max=10)
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(1_000))
    queue.wait_stored(10)
    with Plain.consumer(queue.address) as consumer:
        assert numbers(consumer.take(1_000)) == list(range(1_000))


def test_whoever_waits_for_the_end_waits_for_room_too(queue: FramesNode) -> None:
    queue.create_topic(messages_max=10)
    with Plain.producer(queue.address) as producer, Plain.consumer(queue.address) as consumer:
        producer.send(*numbered(1_000))
        assert producer.done() is None
        assert queue.stored() == 1_000
        assert numbers(consumer.take(1_000)) == list(range(1_000))


def test_a_topic_that_is_told_to_drop_drops_its_oldest(queue: FramesNode) -> None:
    queue.create_topic(messages_max=100, when_full="drop-oldest")
    with Plain.producer(queue.address) as producer:
        producer.send(*numbered(10_000))
        assert producer.done() is None
    with Plain.consumer(queue.address) as consumer:
        assert numbers(consumer.take(100)) == list(range(9_900, 10_000))
        assert consumer.nothing_comes()


def test_a_full_disk_slows_a_producer_until_there_is_room() -> None:
    engine = MemoryEngine(wall_clock_us, bytes_max=2 * MiB)
    with on_a_thread(frames_node(engine=engine, mode="queue")) as node, Plain.producer(node.address) as producer:
        payloads = numbered(3_000, length=1_000)
        sending = Sending(producer, payloads)
        node.eventually(lambda: node.door.budget.in_flight_bytes > 0)
        assert stands_still(node.stored) < len(payloads)
        engine._bytes_max = 16 * MiB
        sending.join()
        assert producer.done() is None
        assert node.stored() == len(payloads)


def has_more_than(node: FramesNode, messages: int) -> bool:
    return node.stored() > messages


def test_a_used_up_quota_slows_a_producer() -> None:
    settings = NodeSettings(security=SecuritySettings(quotas=QuotaSettings(burst_seconds=0.02)))
    with on_a_thread(frames_node(settings=settings, mode="queue")) as node, Plain.producer(node.address) as producer:
        quota = Quota(messages_per_second=2_000)
        node.do(node.node.identity.quotas.set(Subject("principal", "admin"), quota, node.node.measures.now()))
        begin = time.monotonic()
        for start in range(0, 1_000, 50):
            producer.send(*numbered(50, start=start))
            node.eventually(partial(has_more_than, node, start))
        assert producer.done() is None
        assert node.stored() == 1_000
        assert time.monotonic() - begin > 0.4, "a burst of 40, and 2,000 a second"
        assert node.node.measures.limited["principal", "messages"], "it was told to wait"


@asynccontextmanager
async def node_on(disk: SlowFiles) -> AsyncIterator[FramesNode]:
    limits: dict[str, Any] = {"in_flight_bytes_max": 2 * MiB, "in_flight_bytes_total_max": 5 * MiB}
    async with frames_node(engine=await slow_engine(disk), mode="queue", **limits) as node:
        yield node


def test_while_the_disk_is_slow_producers_wait_and_memory_stays_bounded(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    with on_a_thread(node_on(disk)) as node:
        producers = [Plain.producer(node.address) for _ in range(4)]
        producers[0].send(b"-1")
        node.wait_stored(1)
        disk.goes_on.clear()
        try:
            payloads = numbered(8_000, length=4_000)  # More than sockets keep.
            sending = [Sending(producer, payloads) for producer in producers]
            in_flight = stands_still(lambda: node.look(lambda: node.door.budget.in_flight_bytes))
            assert 4 * MiB < in_flight < 5 * MiB + 4 * MiB // 4
            assert not any(each.done for each in sending)
        finally:
            disk.goes_on.set()
        for each in sending:
            each.join()
        assert [producer.done() for producer in producers] == [None] * 4
        assert node.stored() == 32_001
        for producer in producers:
            producer.close()


def test_a_stuck_consumer_of_a_queue_is_cut_off_and_its_messages_go_to_others() -> None:
    count = 2_000
    with (
        on_a_thread(frames_node(mode="queue", send_seconds_max=0.3)) as node,
        Plain.producer(node.address) as producer,
    ):
        producer.send(*numbered(count, length=10_000))
        node.wait_stored(count)
        with Plain.consumer(node.address, receive_buffer_bytes=8_192) as stuck:
            node.wait_consumers(1)
            node.wait_consumers(0)
            left = node.look(node.unsettled)
            with Plain.consumer(node.address) as other:
                rest = numbers(other.take(left))
            taken = numbers(stuck)
        assert taken == list(range(len(taken))), "what was in its socket by then still reaches it"
        assert rest == list(range(rest[0], count))
        assert rest[0] <= len(taken), "and everything else the other one"


def test_a_stuck_consumer_of_a_broadcast_is_waited_for() -> None:
    count = 2_000
    with (
        on_a_thread(frames_node(mode="broadcast", send_seconds_max=0.05)) as node,
        Plain.consumer(node.address, receive_buffer_bytes=8_192) as slow,
        Plain.producer(node.address) as producer,
    ):
        producer.send(*numbered(count, length=10_000))
        node.wait_stored(count)
        consumer = next(iter(node.node.topics["default/frames"].attachments.values())).consumer
        node.eventually(lambda: consumer.paused)
        begin = time.monotonic()
        node.eventually(lambda: time.monotonic() > begin + 0.2)
        assert numbers(slow.take(count)) == list(range(count))
