"""Messages for Spark to read: payloads that are random, and no two of them alike, so that no dictionary flatters."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from bench.spark.order import Topic

PARTITIONS = 2


def create(topic: Topic, *, partitions: int = PARTITIONS) -> None:
    """A topic with all else at its default: durable, sealed."""
    with topic.lane() as lane:
        lane.create_topic(topic.name, partitions=partitions)


def publish(topic: Topic, *, count: int, batch: int, size: int = 100) -> None:
    """So many messages without a key, in batches that the partitions get in turn."""
    with topic.lane() as lane:
        for _ in range(count // batch):
            lane.publish_many(topic.name, pa.record_batch({"payload": unique_payloads(batch, size)}))


def unique_payloads(count: int, size: int) -> pa.Array:
    """Random bytes, cut into values without a look at each."""
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(os.urandom(count * size))]
    )
