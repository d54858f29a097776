"""The pipeline's process of a measurement: `python -m bench.pipeline_client WORK ORDER`, told to begin like others."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

import sealane
from bench.clients.order import SUBSCRIPTION, TOPIC, Result, done, wait_for_the_start
from bench.machine import Disturbance
from bench.pipeline import PipelineOrder
from bench.process_tree import processor_seconds
from bench.spark.sessions import sealane_session
from bench.spark.stored import unique_payloads
from sealane.pipeline.cycle import Cycle, run, run_cycle
from sealane.pipeline.lake.tables import DELIVERIES, Lake
from sealane.pipeline.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}
"""As `sealane pipeline` has them."""
WARM_SUBSCRIPTION = "warm"
SAMPLES_KEPT = 10_000


class NotAllThere(RuntimeError):
    """The tables do not have what they should."""


def take_backlogs(order: PipelineOrder) -> Result:
    """One backlog after the other, into one lake."""
    spark, settings = _warm(order)
    begun_ns = wait_for_the_start()
    own = partial(processor_seconds, os.getppid())
    found: dict[str, list[float]] = {"seconds": [], "processor_seconds": [], "state_bytes": [], "foreign": []}
    for count in order.sizes:
        _fill(order, count, WARM_SUBSCRIPTION)
        watch, before = Disturbance.begin(own), own()
        cycle = run_cycle(spark, settings)
        found["seconds"].append(cycle.seconds)
        found["processor_seconds"].append(own() - before)
        found["foreign"].append(watch.foreign_share())
        found["state_bytes"].append(_state_bytes(Lake(settings.lake)))
        if cycle.messages != count:
            raise NotAllThere(f"a backlog of {count:,} came in as {cycle.messages:,} messages")
    facts = sum(pq.read_metadata(path).num_rows for path in Lake(settings.lake).files(DELIVERIES))
    expected = sum(order.sizes) + order.warm_messages * order.warm_cycles
    if facts != expected:
        raise NotAllThere(f"{expected:,} messages were settled, and there are {facts:,} facts")
    return done(begun_ns, **found)


def follow_load(order: PipelineOrder) -> Result:
    """Cycles as `sealane pipeline run` has them, until all facts are there."""
    spark, settings = _warm(order)
    (count,) = order.sizes
    lake, enough = Lake(settings.lake), threading.Event()
    known, seen = set(lake.files(DELIVERIES)), BitMap64()
    took: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    cycles: list[float] = []

    def look(cycle: Cycle) -> None:
        now_us = time.time_ns() / 1_000
        cycles.append(cycle.seconds)
        for path in sorted(set(lake.files(DELIVERIES)) - known):
            known.add(path)
            # A file that was put together of others has what was looked at, and what was not.
            facts = pq.read_table(path, columns=["partition", "offset", "settled", "subscription"], partitioning=None)
            facts = facts.filter(pc.equal(facts["subscription"], SUBSCRIPTION))
            places = facts["partition"].to_numpy().astype(np.uint64) << 48 | facts["offset"].to_numpy().astype(
                np.uint64
            )
            is_new = np.fromiter((place not in seen for place in places.tolist()), dtype=bool, count=len(places))
            seen.update(places[is_new].tolist())
            took.append((now_us - facts["settled"].cast(pa.int64()).to_numpy()[is_new]) / 1e6)
        if len(seen) >= count:
            enough.set()

    begun_ns = wait_for_the_start()
    watch = Disturbance.begin(partial(processor_seconds, os.getppid()))
    run(spark, settings, enough, look)
    every = np.sort(np.concatenate(took))
    samples = every[np.linspace(0, len(every) - 1, min(len(every), SAMPLES_KEPT)).astype(int)]
    return done(begun_ns, took_seconds=samples.tolist(), cycles=cycles, foreign=[watch.foreign_share()])


def _warm(order: PipelineOrder) -> tuple[SparkSession, PipelineSettings]:
    directory = Path(order.directory)
    spark = sealane_session(directory, SETTINGS)
    settings = PipelineSettings(lake=directory / "lake", topics=TOPIC, url=order.url)
    for _ in range(order.warm_cycles):
        _fill(order, order.warm_messages, WARM_SUBSCRIPTION)
        run_cycle(spark, settings)
    return spark, settings


def _fill(order: PipelineOrder, count: int, subscription: str) -> None:
    """So many messages, published, consumed and acked."""
    with sealane.connect_sync(order.url) as lane:
        for _ in range(count // order.batch):
            lane.publish_many(TOPIC, pa.record_batch({"payload": unique_payloads(order.batch, order.size)}))
        taken = 0
        for batch in lane.consume_batches(TOPIC, subscription, messages_max=order.batch):
            batch.ack(confirm=True)
            taken += len(batch)
            if taken >= count:
                return


def _state_bytes(lake: Lake) -> int:
    return sum(path.stat().st_size for path in (lake.root / "state").rglob("*") if path.is_file())


WORKS: dict[str, Callable[[PipelineOrder], Result]] = {work.__name__: work for work in (take_backlogs, follow_load)}


def main() -> None:
    name, order = sys.argv[1:]
    # The JVM writes to what it inherits as standard output: that is to be where errors go, and never in the result.
    said = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(said, "w", closefd=False)
    result = WORKS[name](PipelineOrder(**json.loads(order)))
    with os.fdopen(said, "wb") as output:
        output.write(json.dumps(result).encode())


if __name__ == "__main__":
    main()
