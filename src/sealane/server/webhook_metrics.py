"""Metrics of webhooks: how their requests ended, and how many webhooks are in which state. None is told by its name."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sealane.node import Node
from sealane.node.webhooks.describe import counts


def webhook_metrics(node: Node) -> Iterator[Metric]:
    requests = CounterMetricFamily("sealane_webhook_requests", "Requests to receivers.", labels=("outcome",))
    for outcome, count in node.measures.webhook_requests.items():
        requests.add_metric((outcome,), count)
    yield requests
    meaning = "Messages that were sent to receivers, by what became of them."
    messages = CounterMetricFamily("sealane_webhook_messages", meaning, labels=("outcome",))
    for outcome, count in node.measures.webhook_messages.items():
        messages.add_metric((outcome,), count)
    yield messages
    states = GaugeMetricFamily("sealane_webhooks", "Webhooks by their state.", labels=("state",))
    if node.webhooks.hosts:
        for state, count in counts(node.webhooks, node.measures.now()).items():
            states.add_metric((state,), count)
    yield states
