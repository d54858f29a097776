"""What a node's work costs as it holds more: messages stored, topics, connections that do nothing.

A grown node and an empty one run side by side and are measured in turn, A B B A, so that whatever the machine does
meanwhile happens to both. Only one of them works at a time.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

import sealane
from bench import growing, resident, wire
from bench.clients.order import Order
from bench.growing import BIG_TOPIC
from bench.processor_time import taken
from sealane.testing.node_process import NodeProcess

Where = Literal["a new topic", "the big topic"]
Cost = dict[str, float]
Progress = Callable[[str], None]

COSTS = {
    "batches": "msg/s",
    "singles": "msg/s",
    "receipt_ms": "ms",
    "received_ms": "ms",
    "batches_us": "µs",
    "singles_us": "µs",
    "paced_us": "µs",
}
"""What is measured, in which unit; of what is measured in time, less is better. The last ones are the node's processor
time for a message, which others on the machine disturb less than they do anything by the clock."""

SETTINGS = {"security.quotas.connections_per_address_max": 2_000}
"""Of both nodes: idle connections come from the same address as those that do the work."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much work one measurement is."""

    batch_messages: int = 1_000_000
    batch: int = 5_000
    single_messages: int = 200_000
    paced_messages: int = 3_000


@dataclass(frozen=True, slots=True)
class Growth:
    """One way to grow, measured beside an empty node: a dict of costs for each round."""

    case: str
    """`50,000,000 messages stored`, `1,000 topics`, `1,000 idle connections`."""
    where: Where
    empty: tuple[Cost, ...]
    grown: tuple[Cost, ...]
    empty_mb: float
    """Memory resident at the end, of each node."""
    grown_mb: float


def cost(node: NodeProcess, amounts: Amounts, *, topic: str | None = None) -> Cost:
    """What work costs on a node that runs: on a topic that is new, and deleted again, or on one that is there.

    Either way the consumers' subscriptions are new and begin at the topic's end. Before each work the node has done
    what the one before it left to do.
    """
    name = topic or f"new-{next(_numbers)}"
    url, rest = node.url, partial(growing.wait_until_it_rests, node)
    with sealane.connect_sync(url) as lane:
        if topic is None:
            lane.create_topic(name)
        order = Order(url, amounts.batch_messages, amounts.batch, topic=name, start="latest")

        rest()
        with _subscription(lane, order) as order_of_batches, taken(node.pid) as for_batches:
            batches = wire.rate_at("publish_many", "consume_batches", order_of_batches)
        rest()
        of_singles = replace(order, count=amounts.single_messages, batch=1)
        with _subscription(lane, of_singles) as order_of_singles, taken(node.pid) as for_singles:
            singles = wire.rate_at("send", "consume", order_of_singles)
        rest()
        of_paced = replace(order, count=amounts.paced_messages, batch=1)
        with _subscription(lane, of_paced) as order_of_paced, taken(node.pid) as for_paced:
            receipt, received = wire.latencies_at(order_of_paced)
        if topic is None:
            lane.delete_topic(name)
    return {
        "batches": batches,
        "singles": singles,
        "receipt_ms": statistics.median(receipt),
        "received_ms": statistics.median(received),
        "batches_us": for_batches.us_each(amounts.batch_messages),
        "singles_us": for_singles.us_each(amounts.single_messages),
        "paced_us": for_paced.us_each(amounts.paced_messages),
    }


@contextmanager
def _subscription(lane: sealane.SyncLane, order: Order) -> Iterator[Order]:
    """The order with a subscription of its own, which the first consumer makes, and which ends with the measurement."""
    order = replace(order, subscription=f"reader-{next(_numbers)}")
    yield order
    lane.unsubscribe(order.topic, order.subscription)


def measure(
    directory: Path,
    *,
    messages: int = 50_000_000,
    topics: int = 1_000,
    connections: int = 1_000,
    rounds: int = 4,
    amounts: Amounts = Amounts(),  # noqa: B008 - frozen
    on_progress: Progress = lambda _: None,
) -> list[Growth]:
    """Grow a node in each of these ways and measure it; an amount of 0 leaves that way out."""
    found: list[Growth] = []
    if messages:
        with _two_nodes(directory) as (empty, grown):
            case = f"{messages:,} messages stored"
            on_progress(f"{case}: storing")
            growing.store(grown, messages)
            found += _side_by_side(case, empty, grown, ("a new topic", "the big topic"), rounds, amounts, on_progress)
    if topics:
        with _two_nodes(directory) as (empty, grown):
            case = f"{topics:,} topics"
            on_progress(f"{case}: creating")
            growing.create_topics(grown, topics)
            found += _side_by_side(case, empty, grown, ("a new topic",), rounds, amounts, on_progress)
    if connections:
        with _two_nodes(directory) as (empty, grown):
            case = f"{connections:,} idle connections"
            on_progress(f"{case}: connecting")
            with growing.connected(grown, connections):
                found += _side_by_side(case, empty, grown, ("a new topic",), rounds, amounts, on_progress)
    return found


@contextmanager
def _two_nodes(directory: Path) -> Iterator[tuple[NodeProcess, NodeProcess]]:
    """An empty one, and one to grow; their data goes when they end, since it may be most of the disk."""
    places = directory / "empty", directory / "grown"
    for place in places:
        place.mkdir()
    try:
        with (
            NodeProcess(places[0] / "data", SETTINGS) as empty,
            NodeProcess(places[1] / "data", SETTINGS) as grown,
        ):
            yield empty, grown
    finally:
        for place in places:
            shutil.rmtree(place)


def _side_by_side(
    case: str,
    empty: NodeProcess,
    grown: NodeProcess,
    wheres: tuple[Where, ...],
    rounds: int,
    amounts: Amounts,
    on_progress: Progress,
) -> list[Growth]:
    # The empty node is measured as often as the grown one, so that both write as much: what was written is compacted
    # later, in the background.
    turns = [(node, where) for where in wheres for node in (empty, grown)]
    costs: dict[tuple[NodeProcess, Where], list[Cost]] = {turn: [] for turn in turns}
    for number in range(rounds):
        for node, where in turns if number % 2 == 0 else reversed(turns):
            topic = BIG_TOPIC if where == "the big topic" and node is grown else None
            costs[node, where].append(cost(node, amounts, topic=topic))
        on_progress(f"{case}: round {number + 1} of {rounds}")
    memory = resident.settled(empty.pid).resident_mb, resident.settled(grown.pid).resident_mb
    return [Growth(case, where, tuple(costs[empty, where]), tuple(costs[grown, where]), *memory) for where in wheres]
