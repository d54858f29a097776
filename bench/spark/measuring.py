"""Nodes, topics and a Spark process, each by itself; what the process found, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.clients.order import TOPIC, Order, Result
from bench.processes import together
from bench.spark import stored
from bench.spark.order import SparkOrder, Topic
from bench.wire_client import command
from bench.work import inner_directory
from sealane.testing.node_process import NodeProcess

PLAIN, TLS = "plain", "tls"
DEADLINE_SECONDS = 600.0


def reading(
    directory: Path, *, count: int, batch: int, size: int, rounds: int, warm_rounds: int, less_count: int
) -> Result:
    """Rates (rows a second) of reading the same number of messages in plain text, over TLS, from Parquet, as tuples."""
    with _topics(directory, PLAIN, TLS) as topics:
        for topic in topics.values():
            stored.publish(topic, count=count, batch=batch, size=size)
        place = str(inner_directory(directory, "spark"))
        order = SparkOrder(topics, place, count, rounds, warm_rounds, less_count=less_count)
        return _spark("read_topics", order)


def writing(directory: Path, *, count: int, size: int, rounds: int, warm_rounds: int) -> Result:
    """Rates (rows a second) of writing a DataFrame into a topic and into Parquet."""
    with _topics(directory, PLAIN) as topics:
        order = SparkOrder(topics, str(inner_directory(directory, "spark")), count, rounds, warm_rounds, size=size)
        return _spark("write_topics", order)


def freshness(
    directory: Path, *, count: int, per_second: int, warm_batches: int, settings: dict[str, str] | None = None
) -> Result:
    """Milliseconds from a publish to `foreachBatch`, of single publishes at a pace.

    Spark has its defaults but for these settings.
    """
    with _topics(directory, PLAIN) as topics:
        place = str(inner_directory(directory, "spark"))
        order = SparkOrder(topics, place, count, warm_rounds=warm_batches, settings=settings)
        publisher = Order(topics[PLAIN].url, count, topic=TOPIC, per_second=per_second)
        followed, _ = together([order.command("follow_topics"), command("publish_at_a_pace", publisher)])
        return followed


def _spark(work: str, order: SparkOrder) -> Result:
    (result,) = together([order.command(work)], DEADLINE_SECONDS)
    return result


@contextmanager
def _topics(directory: Path, *ways: str) -> Iterator[dict[str, Topic]]:
    """A topic on a node of its own for each way of coming in."""
    with ExitStack() as running:
        topics = {}
        for way in ways:
            data = directory / way
            node = running.enter_context(NodeProcess.secure(data) if way == TLS else NodeProcess(data))
            topic = Topic(node.url, TOPIC)
            topics[way] = replace(topic, profile=str(node.profile)) if way == TLS else topic
            stored.create(topics[way])
        yield topics
