"""Over the wire: a node, a producer and a consumer, each a process of its own, on the loopback, with durable acks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sealane
from bench.clients.order import TOPIC, Order
from bench.processes import seconds_over_all, together
from bench.wire_client import command
from sealane.testing.node_process import NodeProcess


def rate(directory: Path, producer: str, consumer: str, *, count: int, batch: int = 1, size: int = 100) -> float:
    """Messages a second, from the first call to the last confirmed ack, on a new node. Payloads are random bytes."""
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        return rate_at(producer, consumer, Order(node.url, count, batch, size))


def rate_at(producer: str, consumer: str, order: Order) -> float:
    """The same on a node that runs and has the topic."""
    # What is not a whole batch is not published, and would be waited for.
    order = replace(order, count=order.count // order.batch * order.batch)
    results = together([command(consumer, order), command(producer, order)])
    return order.count / seconds_over_all(results)


def latencies(directory: Path, *, count: int, durable: bool = True) -> tuple[list[float], list[float]]:
    """Milliseconds from a publish to its receipt, and to its message's arrival, sorted; 1,000 publishes a second.

    A topic that is not durable is kept in the node's memory alone: what is left is all but the disk.
    """
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC, durable=durable)
        return latencies_at(Order(node.url, count))


def latencies_at(order: Order) -> tuple[list[float], list[float]]:
    """The same on a node that runs and has the topic."""
    commands = [command("receive_at_a_pace", order), command("publish_at_a_pace", order)]
    consumed, produced = together(commands)
    return sorted(produced["took_ms"]), sorted(consumed["took_ms"])
