"""Fan-out: one producer, and broadcast consumers that each get everything.

Every consumer is a process of its own, as ten services that want the same events are. On a small machine that measures
also how the kernel lets a dozen processes take turns: `processes` puts several consumers, a connection each, into one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sealane
from bench.clients.order import TOPIC, Order
from bench.processes import seconds_over_all, together
from bench.wire_client import command
from sealane.testing.node_process import NodeProcess


def rate(directory: Path, *, count: int, batch: int, consumers: int = 10, processes: int | None = None) -> float:
    """Deliveries a second: messages times consumers, from the first call to the last consumer's confirmed ack."""
    count = count // batch * batch
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        order = Order(node.url, count, batch)
        shares = spread(consumers, processes or consumers)
        consuming = [command("consume_broadcast", replace(order, connections=share)) for share in shares]
        results = together([*consuming, command("publish_many", order)])
    return count * consumers / seconds_over_all(results)


def spread(amount: int, over: int) -> list[int]:
    """As evenly as whole numbers allow, none of them 0: `spread(10, 4)` is `[3, 3, 2, 2]`."""
    over = min(amount, over)
    return [amount // over + (index < amount % over) for index in range(over)]
