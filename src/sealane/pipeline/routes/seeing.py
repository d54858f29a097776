"""From telemetry to what was seen of each node in each hour, without Spark: for small tables, and as its oracle."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sealane.pipeline.routes.curves import NODE_HOURS
from sealane.pipeline.routes.telemetry import BUCKETS, FORMAT, percentile_ms

BUSY = 0.95
"""The share of an hour's minutes that are not busier than what is planned for."""
SLOWEST = 0.95
"""The share of messages that a node's latency is that of the slowest of: the tail, where an hour has enough of it."""


def seen_in(telemetry: pa.Table) -> pa.Table:
    """What telemetry says of each node and hour, with the columns of `NODE_HOURS`."""
    hours: defaultdict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in telemetry.to_pylist():
        if row["format"] == FORMAT:
            hours[_seconds(row["minute"]) // 3600, row["target"]].append(row)
    return pa.Table.from_pylist([_seen(*place, rows) for place, rows in sorted(hours.items())], schema=NODE_HOURS)


def _seen(hour: int, node: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    routed: defaultdict[int, float] = defaultdict(float)
    came: dict[int, float] = {}
    counts = np.zeros(BUCKETS, dtype=np.int64)
    for row in rows:
        minute = _seconds(row["minute"])
        routed[minute] += row["attempts"] / 60
        came[minute] = max(came.get(minute, 0.0), row["target_per_second"])
        counts[: len(row["latency_counts"])] += np.array(row["latency_counts"], dtype=np.int64)
    p95_ms = percentile_ms(counts, SLOWEST)
    return {
        "hour": hour,
        "node": node,
        "attempts": sum(row["attempts"] for row in rows),
        "failures": sum(row["failures"] for row in rows),
        "per_second": float(np.mean(list(routed.values()))),
        "busy_per_second": float(np.percentile(list(routed.values()), 100 * BUSY, method="inverted_cdf")),
        "other_per_second": float(np.mean([max(came[minute] - routed[minute], 0.0) for minute in routed])),
        "capacity_per_second": max(row["target_capacity_per_second"] for row in rows),
        "p95_ms": None if np.isnan(p95_ms) else p95_ms,
    }


def _seconds(minute: datetime) -> int:
    return int(minute.timestamp())
