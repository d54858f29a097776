"""Any number of threads use one lane."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial

import pytest

import sealane
from tests.sync.waiting import described, eventually, run_together

THREADS = 8
EACH = 2_000


def test_eight_threads_publish_and_consume_without_loss_and_without_repeats(lane: sealane.SyncLane) -> None:
    lane.create_topic("orders", partitions=3)
    total = THREADS * EACH
    seen: Counter[bytes] = Counter()
    lock = threading.Lock()
    consumers: list[sealane.SyncLane] = []

    def publish(thread: int) -> None:
        with lane.producer("orders") as producer:
            for number in range(EACH):
                if number % 500 == 0:
                    lane.publish("orders", b"%d/%d" % (thread, number))
                else:
                    producer.send(b"%d/%d" % (thread, number))

    def consume() -> None:
        for message in lane.consume("orders", "billing"):
            message.ack()
            with lock:
                seen[message.payload] += 1
                done = sum(seen.values()) >= total
            if done:
                # Those who still wait are told by a message each.
                lane.publish_many("orders", [b"end"] * THREADS)
            if done or message.payload == b"end":
                break

    run_together(*(partial(publish, thread) for thread in range(THREADS)), *[consume] * THREADS)
    assert not consumers
    del seen[b"end"]
    assert len(seen) == total
    assert set(seen.values()) == {1}

    def everything_is_settled() -> bool:
        return described(lane, "orders", "billing").leased == 0

    eventually(everything_is_settled)


def test_threads_share_one_producer_and_each_keeps_its_order(lane: sealane.SyncLane) -> None:
    lane.create_topic("orders")
    with lane.producer("orders") as producer:

        def send(thread: int) -> None:
            for number in range(EACH):
                producer.send(b"%d/%d" % (thread, number))

        run_together(*(partial(send, thread) for thread in range(THREADS)))
    by_thread: dict[int, list[int]] = {thread: [] for thread in range(THREADS)}
    received = 0
    for batch in lane.consume_batches("orders", "billing"):
        for payload in batch.payloads():
            thread, number = map(int, payload.split(b"/"))
            by_thread[thread].append(number)
        received += len(batch)
        if received == THREADS * EACH:
            break
    assert by_thread == {thread: list(range(EACH)) for thread in range(THREADS)}


@pytest.mark.parametrize("kind", ["messages", "batches"])
def test_threads_share_one_loop_and_each_item_goes_to_one(lane: sealane.SyncLane, kind: str) -> None:
    for start in range(0, 10_000, 50):
        lane.publish_many("orders", [b"%d" % number for number in range(start, start + 50)])
    seen: list[int] = []

    def consume(items: object) -> None:
        while len(seen) < 10_000:
            try:
                item = next(items)  # type: ignore[call-overload]
            except sealane.Closed:
                return
            seen.extend(map(int, [item.payload] if kind == "messages" else item.payloads()))
            item.ack()
            if len(seen) >= 10_000:
                items.close()  # type: ignore[attr-defined]

    loop = iter(
        lane.consume("orders", "billing")
        if kind == "messages"
        else lane.consume_batches("orders", "billing", messages_max=20)
    )
    run_together(*[partial(consume, loop)] * 4)
    assert sorted(seen) == list(range(10_000))
    eventually(lambda: described(lane, "orders", "billing").depth == 0)


def test_revocations_reach_what_another_thread_has_not_handed_out_yet(lane: sealane.SyncLane) -> None:
    """A key's later messages go back with the one that failed, so that its order survives."""
    lane.publish_many("orders", [b"x"])  # the topic
    for number in range(50):
        lane.publish("orders", b"%d" % number, key=b"same")
    handled: list[int] = []
    for message in lane.consume("orders", "billing", mode="key-shared", retry=sealane.Retry("fixed", 0.0)):
        if message.payload == b"x":
            message.ack()
            continue
        if int(message.payload) % 10 == 5 and message.attempt == 1:
            message.nack(confirm=True)
            continue
        handled.append(int(message.payload))
        message.ack()
        if len(handled) == 50:
            break
    assert handled == list(range(50))
