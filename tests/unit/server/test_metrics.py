"""What a node has done and how it is, as Prometheus reads it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from sealane.errors import TopicNotFound
from sealane.node import Node
from sealane.server.metrics import Metrics
from tests.architecture.source import ROOT
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node

PAGE = ROOT / "docs" / "metrics.md"


def scraped(node: Node) -> dict[str, Metric]:
    content, content_type = Metrics(node).render()
    assert content_type.startswith("text/plain; version=0.0.4")
    return {family.name: family for family in text_string_to_metric_families(content.decode())}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    samples = [sample for family in families.values() for sample in family.samples if sample.name == name]
    found = [sample.value for sample in samples if sample.labels == labels]
    assert len(found) == 1, f"{name} {labels}: {samples}"
    return found[0]


async def test_counts_carry_their_topic_and_subscription() -> None:
    async with running_node() as running:
        await running.lane.publish_many("shop/orders", [b"x" * 100] * 10)
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for batch in running.lane.consume_batches("shop/orders", subscription="billing", messages_max=10):
                await batch.ack(confirm=True)
                break
        families = scraped(running.node)

    topic = {"domain": "shop", "topic": "orders"}
    billing = {**topic, "subscription": "billing"}
    assert value(families, "sealane_published_messages_total", **topic) == 10
    assert value(families, "sealane_published_bytes_total", **topic) > 1_000
    assert value(families, "sealane_topic_messages", **topic) == 10
    assert value(families, "sealane_delivered_messages_total", **billing) == 10
    assert value(families, "sealane_acked_messages_total", **billing) == 10
    assert value(families, "sealane_depth_messages", **billing) == 0
    assert value(families, "sealane_oldest_unsettled_seconds", **billing) == 0


async def test_the_ends_of_certificates_are_told_before_they_come() -> None:
    async with running_node() as running:
        assert scraped(running.node)["sealane_certificate_expires_seconds"].samples == []
        await running.lane.administer("ca.init")
        for name, days in (("anna", 10), ("bert", 20), ("carl", 1)):
            await running.lane.administer("ca.issue", name=name, days=days)
        await running.lane.administer("ca.issue", name="node", usage="server", days=5)
        await running.lane.administer("ca.renew", certificate="carl", days=30)
        families = scraped(running.node)

    name, day = "sealane_certificate_expires_seconds", 24 * 3600
    assert value(families, name, of="client") == 10 * day
    assert value(families, name, of="server") == 5 * day
    assert value(families, name, of="authority") == 3_650 * day


async def test_histograms_count_every_message() -> None:
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x"] * 10)
        families = scraped(running.node)

    assert value(families, "sealane_publish_to_durable_seconds_count") == 10
    assert value(families, "sealane_publish_to_durable_seconds_bucket", le="+Inf") == 10
    bounds = [sample.value for sample in families["sealane_publish_to_durable_seconds"].samples][:-2]
    assert bounds == sorted(bounds)


async def test_the_state_of_the_node_is_in_gauges() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        running.node.measures.connections["native"] = lambda: 5
        running.node.measures.refused(TopicNotFound("default/nowhere"))
        running.node.measures.handshakes_refused["native"] += 2
        running.node.supervisor.crashed("timer", RuntimeError("planted"))
        running.clock.pass_seconds(3)
        families = scraped(running.node)

    assert value(families, "sealane_connections", door="native") == 5
    assert value(families, "sealane_refusals_total", error="TopicNotFound") == 1
    assert value(families, "sealane_handshakes_refused_total", door="native") == 2
    assert value(families, "sealane_task_crashes_total", task="timer") == 1
    assert value(families, "sealane_uptime_seconds") == 3
    assert value(families, "sealane_ready") == value(families, "sealane_live") == 1
    assert value(families, "sealane_storage_full") == value(families, "sealane_storage_failed") == 0
    assert value(families, "sealane_storage_bytes") > 0
    assert value(families, "sealane_memory_bytes") > 10_000_000
    assert 0 < value(families, "sealane_open_files") <= value(families, "sealane_open_files_limit")


async def test_a_thousand_topics_are_one_line_each() -> None:
    async with running_node() as running:
        for number in range(1_000):
            await running.lane.create_topic(f"topic-{number}")
        families = scraped(running.node)

    assert len(families["sealane_published_messages"].samples) == 1_000
    # Nothing is labelled by consumer, connection or partition: what is scraped grows with topics and subscriptions.
    labels = {label for family in families.values() for sample in family.samples for label in sample.labels}
    assert labels <= {"domain", "topic", "subscription", "error", "task", "door", "version", "engine", "le"}


def documented(page: Path) -> set[str]:
    return set(re.findall(r"^\| `(sealane_\w+)` \|", page.read_text("utf-8"), re.MULTILINE))


async def test_every_metric_is_documented_and_nothing_else() -> None:
    async with running_node() as running:
        await running.lane.publish("orders", b"x")
        text = Metrics(running.node).render()[0].decode()

    # A limit that is not set has no value to show.
    exposed = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)) | {"sealane_storage_limit_bytes"}
    assert documented(PAGE) == exposed
