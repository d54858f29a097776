"""Measures of anomalies, in words: which chart shows one, and what its numbers are."""

from __future__ import annotations

from sealane.pipeline.report.figures import Anomaly
from sealane.pipeline.report.numbers import Shown, count, milliseconds, percent

_WORDS = {"rate": ("rate", "published", "bytes"), "latency": ("latency",), "depth": ("depth",), "error": ("error",)}
"""Of each chart: a measure whose name has one of these words is shown there."""


def is_of(anomaly: Anomaly, chart: str) -> bool:
    return any(word in anomaly.measure.lower() for word in _WORDS[chart])


def observed(anomaly: Anomaly) -> str | None:
    return None if anomaly.observed is None else _shown(anomaly)(anomaly.observed)


def expected(anomaly: Anomaly) -> str | None:
    """`3 k – 5 k`, or `up to 50 ms`."""
    shown = _shown(anomaly)
    low, high = anomaly.expected_low, anomaly.expected_high
    if high is None:
        return None if low is None else f"from {shown(low)}"
    return f"{shown(low)} – {shown(high)}" if low else f"up to {shown(high)}"


def told(anomaly: Anomaly) -> str:
    """In one line, for a mark on a chart."""
    where = " ".join(part for part in (anomaly.topic, anomaly.subscription) if part)
    expected_text = expected(anomaly)
    instead = f", expected {expected_text}" if expected_text else ""
    return f"{where}: {anomaly.measure} {observed(anomaly) or 'unknown'}{instead}"


def _shown(anomaly: Anomaly) -> Shown:
    if is_of(anomaly, "latency"):
        return milliseconds
    is_share = is_of(anomaly, "error") or anomaly.measure == "usage"
    return percent if is_share else count
