"""A node that is killed in the middle of it all: what it had stored is not lost, and the queue goes on where it was."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import sealane
from sealane.testing.node_process import NodeProcess
from tests.integration.frames.plain import Plain, numbered, numbers

SETTINGS = {"doors.frames.enabled": "on", "doors.frames.port": 0, "doors.frames.mode": "queue"}
SEEN_BEFORE_THE_KILL = 20_000


def send_until_the_end(producer: Plain, at_once: int) -> None:
    start = 0
    with suppress(OSError):
        while True:
            producer.send(*numbered(at_once, start=start, length=100))
            start += at_once


def take_until_the_end(consumer: Plain, taken: list[int]) -> None:
    for frame in consumer:
        taken += numbers([frame])


def test_what_anybody_saw_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", SETTINGS) as node:
        seen, before = [], list[int]()
        with Plain.consumer(node.doors["frames"]) as consumer, Plain.producer(node.doors["frames"]) as producer:
            taking = threading.Thread(target=take_until_the_end, args=(consumer, before))
            sending = threading.Thread(target=send_until_the_end, args=(producer, 1_000))
            taking.start()
            sending.start()
            with sealane.connect_sync(node.url) as lane:
                for batch in lane.consume_batches("frames", subscription="witness"):
                    seen += numbers(batch.payloads())
                    if len(seen) > SEEN_BEFORE_THE_KILL:
                        break
                node.kill()
            taking.join()
            sending.join()
        node.start()
        assert seen == list(range(len(seen)))
        assert before == list(range(len(before))), "what comes to a consumer has no gap"
        with Plain.consumer(node.doors["frames"]) as again:
            first = numbers(again.take(1))[0]
            assert first <= len(before), "nothing between what was taken and what comes now"
            last = max(len(seen), len(before), first + 1)
            assert numbers(again.take(last - first - 1)) == list(range(first + 1, last))


def test_whoever_saw_the_end_before_a_kill_has_stored_everything(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", SETTINGS) as node:
        with Plain.producer(node.doors["frames"]) as producer:
            producer.send(*numbered(5_000))
            assert producer.done() is None
        node.kill()
        node.start()
        with Plain.consumer(node.doors["frames"]) as consumer:
            assert numbers(consumer.take(5_000)) == list(range(5_000))
