"""A crowd: several producers, and consumers that share a subscription, over several partitions; a process each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import sealane
from bench.clients.order import TOPIC, Order
from bench.fan_out import spread
from bench.processes import seconds_over_all, together
from bench.wire_client import command
from sealane.testing.node_process import NodeProcess

IN_FLIGHT_OF_SEVERAL = 8
"""Batches of each of several producers on their way: with as many as of one alone they are slower by a sixth."""


class NotAllReceived(RuntimeError):
    """Consumers fell silent before everything was there: the figure would be of something else."""


def rate(directory: Path, *, count: int, batch: int, producers: int, consumers: int, partitions: int) -> float:
    """Messages a second over all of them, `count` in all, from the first call to the last confirmed ack."""
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC, partitions=partitions)
        order = Order(node.url, count, batch, in_flight=IN_FLIGHT_OF_SEVERAL if producers > 1 else 0)
        shares = [share * batch for share in spread(count // batch, producers)]
        consuming = [command("share_batches", order)] * consumers
        publishing = [command("publish_many", replace(order, count=share)) for share in shares]
        results = together([*consuming, *publishing])
    received = sum(result["received"] for result in results[:consumers])
    if received != sum(shares):
        raise NotAllReceived(f"{received:,} of {sum(shares):,} messages were received and confirmed")
    return received / seconds_over_all(results)
