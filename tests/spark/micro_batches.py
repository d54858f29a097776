"""Micro-batches by hand: what Spark asks of a source on the driver and on executors, without Java."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql.streaming.datasource import ReadAllAvailable

from sealane.client.sync import SyncLane
from sealane.spark.data_source import SealaneDataSource
from sealane.spark.source.spark_types import spark_schema
from sealane.spark.source.stream_reader import StreamReader

EVERYTHING = ReadAllAvailable()


class Readers(Protocol):
    """Makes a new reader each time, as a restart does, with these options beside the usual ones."""

    def __call__(self, **options: str) -> StreamReader: ...


def readers_of(url: str, topic: str) -> Readers:
    def make(**options: str) -> StreamReader:
        source = SealaneDataSource({"url": url, "topic": topic, **options})
        return source.streamReader(spark_schema())

    return make


def read(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
    """What the tasks of a micro-batch read, each from a copy of the reader, as executors have it."""
    return [
        payload
        for task in reader.partitions(start, end)
        for batch in _copy(reader).read(_copy(task))
        for payload in batch.column("payload").to_pylist()
    ]


def _copy(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def offsets(end: dict[str, Any], topic: str) -> dict[str, int]:
    """Of one topic, by partition."""
    return {name: offset for name, offset in end[f"default/{topic}"].items() if name != "incarnation"}


def numbers(*wanted: int) -> list[bytes]:
    return [b"%d" % number for number in wanted]


def publish(lane: SyncLane, topic: str, wanted: Sequence[int]) -> None:
    lane.publish_many(topic, numbers(*wanted))
