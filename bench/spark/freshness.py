"""How long it takes from a publish until `foreachBatch` of a streaming query has the row."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clients.order import Result, done, wait_for_the_start
from bench.clients.paced import MOMENT
from bench.machine import Disturbance
from bench.process_tree import processor_seconds
from bench.spark.order import SparkOrder, Topic
from bench.spark.sessions import sealane_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

WARM_PAUSE_SECONDS = 0.05
SECONDS_MAX = 240.0


class QueryEnded(RuntimeError):
    """The streaming query failed, or did not come as far as it should in time."""


class Arrivals:
    """What `foreachBatch` has seen: how old each row was when the driver had it."""

    def __init__(self, count: int) -> None:
        self.batches = 0
        self.took_ms: list[float] = []
        self.all_there = threading.Event()
        self._count = count

    def take(self, frame: DataFrame, _batch: int) -> None:
        payloads = [row.payload for row in frame.select("payload").collect()]
        now_ns = time.monotonic_ns()
        moments = [MOMENT.unpack_from(payload)[0] for payload in payloads]
        self.took_ms += [(now_ns - moment) / 1e6 for moment in moments if moment]
        self.batches += 1
        if len(self.took_ms) >= self._count:
            self.all_there.set()


def follow_topics(order: SparkOrder) -> Result:
    """Follow a topic from its end; the publisher is a process of its own, as all are that are told to begin at once."""
    directory = Path(order.directory)
    spark = sealane_session(directory, order.settings)
    ((name, topic),) = order.topics.items()
    arrivals = Arrivals(order.count)
    query = (
        spark.readStream.format("sealane")
        .options(**topic.options)
        .load()
        .writeStream.option("checkpointLocation", str(directory / "checkpoint"))
        .foreachBatch(arrivals.take)
        .start()
    )
    _warm_up(topic, arrivals, query, batches=order.warm_rounds)
    begun_ns = wait_for_the_start()
    watch = Disturbance.begin(partial(processor_seconds, os.getppid()))
    _wait(query, arrivals)
    foreign = watch.foreign_share()
    phases = [progress["durationMs"] for progress in query.recentProgress if progress["numInputRows"]]
    query.stop()
    return done(begun_ns, took_ms={name: arrivals.took_ms}, foreign=[foreign], phases=phases)


def _warm_up(topic: Topic, arrivals: Arrivals, query: StreamingQuery, *, batches: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    with topic.lane() as lane:
        while arrivals.batches < batches:
            _check(query, deadline)
            lane.publish(topic.name, MOMENT.pack(0))
            time.sleep(WARM_PAUSE_SECONDS)


def _wait(query: StreamingQuery, arrivals: Arrivals) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not arrivals.all_there.wait(0.5):
        _check(query, deadline)


def _check(query: StreamingQuery, deadline: float) -> None:
    if not query.isActive or time.monotonic() > deadline:
        problem = query.exception() if not query.isActive else f"not done within {SECONDS_MAX:g} s"
        raise QueryEnded(f"the streaming query ended too soon or too late: {problem}")
