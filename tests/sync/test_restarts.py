"""The node goes away and comes back: producers and loops in threads go on as if nothing had been."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from pathlib import Path

import sealane
from sealane.client.sync.portal import Portal
from sealane.doors.native.settings import NativeDoorSettings
from tests.native_node import NativeNode, native_node
from tests.sync.waiting import described, eventually, run_together

COUNT = 3_000
RESTARTS = 3


def started(path: Path, port: int = 0) -> tuple[Portal[NativeNode], NativeNode]:
    portal = Portal(partial(native_node, path, door=NativeDoorSettings(port=port)))
    return portal, portal.open()


def test_threads_go_on_when_the_node_is_back(tmp_path: Path) -> None:
    portal, node = started(tmp_path / "data")
    port = node.port
    confirmed: Counter[int] = Counter()
    granted_after: list[int] = []
    everything = threading.Event()

    with sealane.connect_sync(node.url) as lane:
        lane.create_topic("orders")

        def produce() -> None:
            with lane.producer("orders") as producer:
                for number in range(COUNT):
                    producer.send(b"%d" % number)
                    if number % 100 == 0:
                        producer.flush()

        def consume() -> None:
            for message in lane.consume("orders", "billing", prefetch=100):
                number = int(message.payload)
                if number in confirmed:
                    granted_after.append(number)
                try:
                    message.ack(confirm=True)
                except sealane.SealaneError:
                    continue  # The node went away meanwhile; if it had not heard, the message comes again.
                confirmed[number] += 1
                if COUNT - 1 in confirmed and described(lane, "orders", "billing").depth == 0:
                    break
            everything.set()

        def restart() -> None:
            nonlocal portal
            for part in range(1, RESTARTS + 1):
                eventually(lambda part=part: len(confirmed) > part * COUNT // (RESTARTS + 2))  # type: ignore[misc]
                portal.close()
                portal, _ = started(tmp_path / "data", port)

        run_together(produce, consume, restart)
        assert everything.is_set()
        assert granted_after == []
        assert set(confirmed.values()) == {1}
        assert described(lane, "orders", "billing").depth == 0
        assert lane.describe_topic("orders").partitions[0].end == COUNT
    portal.close()
