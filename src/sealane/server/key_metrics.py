"""Metrics of the keys that seal what is stored: how old they are, and how far sealing anew is."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from sealane.engine.key_keeping import KeepsKeys, KeysStatus
from sealane.node import Node


def key_metrics(node: Node) -> Iterator[Metric]:
    """A node that keeps its messages in memory has no keys, and nothing to be sealed anew."""
    found = node.engine.keys.status() if isinstance(node.engine, KeepsKeys) else KeysStatus((), 0, 0)
    now_us = node.surroundings.clock()
    ages = GaugeMetricFamily(
        "sealane_domain_key_age_seconds", "How long ago a domain's key was made.", labels=("domain",)
    )
    older = GaugeMetricFamily(
        "sealane_domain_older_keys",
        "Keys of a domain beside its newest one, until nothing is sealed by them.",
        labels=("domain",),
    )
    for each in found.domains:
        if each.made_us is not None:
            ages.add_metric((each.domain,), max(0, now_us - each.made_us) / 1e6)
        older.add_metric((each.domain,), each.older)
    yield ages
    yield older
    yield GaugeMetricFamily(
        "sealane_resealing_bytes", "What was found to be sealed anew; 0 if there is nothing.", value=found.bytes_total
    )
    yield GaugeMetricFamily("sealane_resealing_left_bytes", "What is left of it.", value=found.bytes_left)
