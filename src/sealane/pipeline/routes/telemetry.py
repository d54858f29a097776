"""What nodes tell of the ways to each other: the rows of `_system/route_telemetry`, by the minute."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

TELEMETRY_TOPIC = "_system/route_telemetry"
FORMAT = 1
"""Rows of a higher one are left out: they may mean something else."""

BUCKET_MS_FIRST = 0.125
BUCKETS_PER_DOUBLING = 4
BUCKETS = 80
"""Up to two minutes. With four for each doubling, a percentile is at most 9 % off."""

TELEMETRY_SCHEMA = pa.schema(
    [
        ("format", pa.int32()),
        ("minute", pa.timestamp("us", tz="UTC")),
        ("origin", pa.string()),
        ("target", pa.string()),
        ("topic", pa.string()),
        ("attempts", pa.int64()),
        ("failures", pa.int64()),
        ("bytes", pa.int64()),
        ("latency_counts", pa.list_(pa.int64())),
        ("target_per_second", pa.float64()),
        ("target_capacity_per_second", pa.float64()),
    ]
)
"""One row for each minute, origin, target and topic that had attempts. docs/routes.md says what each column means."""

TELEMETRY_COLUMNS = (
    "format INT, minute TIMESTAMP, origin STRING, target STRING, topic STRING, attempts BIGINT, failures BIGINT, "
    "bytes BIGINT, latency_counts ARRAY<BIGINT>, target_per_second DOUBLE, target_capacity_per_second DOUBLE"
)
"""The same in Spark's words: a message of the topic is such a row, as a JSON object."""


def bucket_of(latency_ms: np.ndarray) -> np.ndarray:
    """The bucket of each latency: number n ends at `BUCKET_MS_FIRST` × 2^(n / `BUCKETS_PER_DOUBLING`), the first has
    all that is below, and the last all that is above.
    """
    steps = np.log2(np.maximum(latency_ms, BUCKET_MS_FIRST) / BUCKET_MS_FIRST) * BUCKETS_PER_DOUBLING
    return np.minimum(np.ceil(steps).astype(np.int64), BUCKETS - 1)


def counts_of(latency_ms: np.ndarray) -> list[int]:
    """A column's value for these latencies, without the zeros at its end."""
    return [int(count) for count in np.bincount(bucket_of(latency_ms))] if len(latency_ms) else []


def bucket_ms(bucket: int) -> float:
    """A latency that stands for all of a bucket: the middle, as ratios go."""
    return BUCKET_MS_FIRST * 2.0 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING)


def percentile_ms(counts: list[int] | np.ndarray, share: float) -> float:
    """The latency that this share of the messages does not exceed; NaN where there are none."""
    total = int(np.sum(counts))
    if not total:
        return math.nan
    return bucket_ms(int(np.searchsorted(np.cumsum(counts), math.ceil(total * share))))
