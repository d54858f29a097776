"""Traffic by the minute: who published, what became of it, and what each subscription has left to do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sealane.pipeline.anomalies.binning import binned, left_before, with_depth
from sealane.pipeline.anomalies.measures import BIN_SECONDS
from sealane.pipeline.facts.beginnings import beginnings
from sealane.pipeline.facts.deliveries import facts_of, gathered
from sealane.pipeline.facts.events import events_of, runs_of
from sealane.pipeline.facts.views import UNKNOWN, traffic
from sealane.spark.source.spark_types import message_columns
from tests.spark.pipeline.told import START, Told, framed, laid_out, message_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = timedelta(minutes=1)
CLIENT = bytes(range(200, 216))
PRODUCERS = (b"principal:anna", b"loader", CLIENT, None)
EMPTY_BINS = ("domain", "topic", "subscription", "bin", "depth")

Tables = tuple["DataFrame", "DataFrame", "DataFrame"]
"""Messages, history and deliveries."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    """A message each ten seconds, for two minutes, by four producers in turn.

    Billing began with the log and settles the first three, one of them a minute late. Late began at offset 6, which
    is the first of the second minute, and settles that. What is filtered cannot be told, nor what is gone.
    """
    rows = message_rows(12)
    for row in rows:
        row["created"] = START + timedelta(seconds=10 * row["offset"])
        row["producer"] = PRODUCERS[row["offset"] % 4]
    told = Told()
    told.tell("subscribed", (0, 0), mode="shared")
    told.tell("subscribed", (0, 0), subscription="choosy", mode="shared", filter="key = 'x'")
    told.tell("subscribed", (0, 0), subscription="gone", mode="shared")
    told.tell("subscribed", (0, 6), subscription="late", mode="shared")
    for subscription, offset, seconds in (("billing", 0, 5), ("billing", 1, 15), ("billing", 2, 80), ("late", 6, 65)):
        moment, run = START + timedelta(seconds=seconds), (offset, offset + 1)
        told.tell("granted", run, subscription=subscription, lease=offset, consumer="bert", time=moment)
        told.tell("acked", run, subscription=subscription, lease=offset, time=moment)
    told.tell("acked", (4, 5), subscription="choosy", lease=9, time=START + MINUTE)
    told.tell("unsubscribed", subscription="gone")
    messages = laid_out(framed(spark, rows, message_columns())).persist()
    runs = runs_of(told.frame(spark)).persist()
    settled = gathered(events_of(runs)).where("outcome IS NOT NULL")
    return messages, runs, facts_of(settled, messages).persist()


@pytest.fixture(scope="module")
def rows(tables: Tables) -> list[Any]:
    messages, runs, deliveries = tables
    return traffic(messages, deliveries, runs).orderBy("minute").collect()


def of_reader(rows: list[Any], subscription: str) -> list[tuple[Any, ...]]:
    found = [row for row in rows if row.subscription == subscription]
    return [(row.published, row.settled, row.depth, row.lag_seconds) for row in found]


def test_a_subscription_has_to_do_what_came_since_it_began(rows: list[Any]) -> None:
    # By the end of the first minute four are left, of which the oldest came with the minute's first message.
    assert of_reader(rows, "billing") == [(6, 2, 4, 60), (6, 1, 9, 120)]
    assert of_reader(rows, "late") == [(6, 0, 0, 0), (6, 1, 5, 60)]


@pytest.mark.parametrize("subscription", ["choosy", "gone"])
def test_what_cannot_be_told_is_null(rows: list[Any], subscription: str) -> None:
    assert {row[2:] for row in of_reader(rows, subscription)} == {(None, None)}


def test_who_published_is_told_as_far_as_the_log_knows(rows: list[Any]) -> None:
    found = {(row.producer, row.minute.minute): row.published for row in rows if row.producer is not None}
    names = ("anna", "loader", CLIENT.hex(), UNKNOWN)
    assert found == {
        **{(name, 0): count for name, count in zip(names, (2, 2, 1, 1), strict=True)},
        **{(name, 1): count for name, count in zip(names, (1, 1, 2, 2), strict=True)},
    }
    assert all((row.producer is None) != (row.subscription is None) for row in rows)
    assert sum(row.bytes for row in rows if row.producer is not None) == sum(range(12))


def test_what_became_of_a_producers_messages_is_told(rows: list[Any]) -> None:
    found = {
        (row.producer, row.minute.minute): (row.settled, row.errors, row.latency_p50_ms)
        for row in rows
        if row.producer is not None and row.settled
    }
    # Offsets 0, 1, 2 and 6, each by when it was settled; 4 by whoever is choosy.
    assert found == {
        ("anna", 0): (1, 0, 5_000.0),
        ("anna", 1): (1, 0, 20_000.0),
        ("loader", 0): (1, 0, 5_000.0),
        (CLIENT.hex(), 1): (2, 0, 5_000.0),
    }


def test_the_depth_of_bins_is_that_of_the_view(tables: Tables) -> None:
    messages, runs, deliveries = tables
    base = beginnings(runs)
    counted: Any = binned(messages, deliveries, base).toPandas()
    empty = counted.iloc[:0].assign(depth=0.0)[list(EMPTY_BINS)]
    found = with_depth(counted, empty).set_index("subscription")
    assert set(counted["bin"]) == {int(START.timestamp()) // BIN_SECONDS}
    assert (found.loc["billing", "depth"], found.loc["late", "depth"]) == (9, 5)
    assert found["depth"].isna()["choosy"]
    left = {row.subscription: row.depth for row in left_before(messages, deliveries, base).collect()}
    assert left == {"billing": 9, "late": 5}
