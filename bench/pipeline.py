"""The lake's pipeline: what a backlog takes, by its size, and how soon a fact is seen under a steady load."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.clients.order import TOPIC, Order, Result
from bench.processes import module, together
from bench.spark import stored
from bench.spark.order import Topic
from bench.wire_client import command
from bench.work import inner_directory
from sealane.testing.node_process import NodeProcess

MODULE = "bench.pipeline_client"
DEADLINE_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class PipelineOrder:
    """What the pipeline's process is asked to do, as it is handed over on its command line."""

    url: str
    directory: str
    """An empty one: for the lake, and whatever Spark keeps on disk."""
    sizes: list[int]
    """Messages of each backlog; or, under a load, of all that comes."""
    batch: int
    size: int
    """Bytes of a payload."""
    warm_messages: int
    """Before the first that counts: Java compiles what it runs, and Spark starts its workers."""
    warm_cycles: int

    def command(self, work: str) -> list[str]:
        return module(MODULE, work, json.dumps(asdict(self)))


def backlogs(
    directory: Path, *, sizes: Sequence[int], batch: int, size: int, warm_messages: int, warm_cycles: int
) -> Result:
    """Seconds, processor seconds and bytes of state for one backlog after the other, each published, consumed and
    acked before the pipeline begins.
    """
    with NodeProcess(directory / "node") as node:
        order = _order(node, directory, list(sizes), batch, size, warm_messages, warm_cycles)
        (result,) = together([order.command("take_backlogs")], DEADLINE_SECONDS)
        return result


def steady(
    directory: Path, *, per_second: int, seconds: int, batch: int, size: int, warm_messages: int, warm_cycles: int
) -> Result:
    """Seconds from each ack to the moment at which its fact is in the table, while a producer keeps a pace and a
    consumer settles what it gets.
    """
    with NodeProcess(directory / "node") as node:
        count = per_second * seconds // batch * batch
        order = _order(node, directory, [count], batch, size, warm_messages, warm_cycles)
        load = Order(node.url, count, batch, size, topic=TOPIC, per_second=per_second // batch, start="latest")
        followed, _, _ = together(
            [order.command("follow_load"), command("publish_many_at_a_pace", load), command("consume_batches", load)],
            DEADLINE_SECONDS,
        )
        return followed


def _order(
    node: NodeProcess, directory: Path, sizes: list[int], batch: int, size: int, warm_messages: int, warm_cycles: int
) -> PipelineOrder:
    stored.create(Topic(node.url, TOPIC))
    place = str(inner_directory(directory, "lake"))
    return PipelineOrder(node.url, place, sizes, batch, size, warm_messages, warm_cycles)
