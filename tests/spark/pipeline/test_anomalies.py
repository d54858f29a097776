"""Anomalies by Spark: those of the core, recorded once, with what contributed to them."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.anomalies.anomaly import bin_time
from sealane.pipeline.anomalies.binning import TOPIC, binned
from sealane.pipeline.anomalies.detecting import detect
from sealane.pipeline.anomalies.measures import BIN_SECONDS, BINS_A_DAY, ERRORS, LATENCY, RATE
from sealane.pipeline.anomalies.observed import Observed
from sealane.pipeline.anomalies.watching import watch_usage
from sealane.pipeline.asking import read
from sealane.pipeline.facts.views import traffic
from sealane.pipeline.lake import log as lake_log
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import ANOMALIES, DELIVERIES, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.anomalies import GRACE_SECONDS, recorded_anomalies, refresh_anomalies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONDAY = 20_514 * BINS_A_DAY
DAYS = 9
TODAY = MONDAY + (DAYS - 1) * BINS_A_DAY
STOP = TODAY + BINS_A_DAY
NOON = TODAY + BINS_A_DAY // 2
TIME = pa.timestamp("us", "UTC")


def month_part() -> tuple[np.ndarray, np.ndarray]:
    """Messages of each bin, and how many of them die: a spike, then a burst of errors, then silence."""
    random = np.random.default_rng(5)
    hours = np.arange(DAYS * BINS_A_DAY) / 12
    counts = random.poisson(12 * (1.3 + np.sin(hours / 24 * 2 * np.pi)))
    counts[NOON - MONDAY : NOON - MONDAY + 4] += 60
    errors = np.zeros(len(counts), dtype=int)
    errors[NOON - MONDAY + 30 : NOON - MONDAY + 33] = 6
    counts[NOON - MONDAY + 100 : NOON - MONDAY + 124] = 0
    return counts, np.minimum(errors, counts)


def write(lake: Lake) -> None:
    """The tables as the pipeline leaves them: each message is settled 20 ms after it was created, in its bin."""
    counts, errors = month_part()
    bins = MONDAY + np.repeat(np.arange(len(counts)), counts)
    place = np.concatenate([np.arange(count) for count in counts])
    created = (bins * BIN_SECONDS * 1_000_000) + place * 1_000_000
    in_spike = (bins >= NOON) & (bins < NOON + 4)
    producers = np.where(in_spike & (place >= 15), b"loader", b"shop")
    dead = place < np.repeat(errors, counts)
    shared = {"partition": np.zeros(len(bins), np.int32), "offset": np.arange(len(bins))}
    messages = pa.table(
        {
            **shared,
            "created": pa.array(created, TIME),
            "producer": pa.array(producers.tolist(), pa.binary()),
            "bytes": place,
        }
    )
    deliveries = pa.table(
        {
            **shared,
            "subscription": ["billing"] * len(bins),
            "published": pa.array(created, TIME),
            "settled": pa.array(created + 20_000, TIME),
            "attempts": np.ones(len(bins), np.int32),
            "outcome": np.where(dead, "dead-lettered", "acked"),
            "latency_ms": np.full(len(bins), 20.0),
            "cause": ["nack" if each else None for each in dead],
            "reason": ["no such customer" if each else None for each in dead],
        }
    )
    days = bins // BINS_A_DAY
    for table, rows in ((RAW_MESSAGES, messages), (DELIVERIES, deliveries)):
        append(lake, table, partial(_by_day, rows=rows, days=days), writer="test", number=0)


def _by_day(staging: Path, rows: pa.Table, days: np.ndarray) -> None:
    for day in np.unique(days):
        place = staging / "domain=default" / "topic=orders" / f"date={bin_time(int(day) * BINS_A_DAY).date()}"
        place.mkdir(parents=True)
        pq.write_table(rows.filter(pa.array(days == day)), place / "part-0.parquet")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("anomalies") / "lake")
    write(lake)
    return lake


@pytest.fixture
def lake(written: Lake, tmp_path: Path) -> Lake:
    shutil.copytree(written.root, tmp_path / "lake")
    return Lake(tmp_path / "lake")


def refresh(spark: SparkSession, lake: Lake, stop: int) -> list[Any]:
    now = bin_time(stop) + timedelta(seconds=GRACE_SECONDS)
    return refresh_anomalies(spark, lake, PipelineSettings(lake=lake.root), now=now, since=bin_time(TODAY))


def expected() -> set[tuple[str, str, datetime]]:
    """What the core says of the same traffic."""
    counts, errors = (each.astype(float) for each in month_part())
    settled = np.where(counts >= 5, 20.0, np.nan)
    series = [
        (RATE, Observed(MONDAY, counts)),
        (ERRORS, Observed(MONDAY, errors, counts)),
        (LATENCY, Observed(MONDAY, settled)),
    ]
    return {
        (measure.name, each.kind, bin_time(each.first))
        for measure, observed in series
        for each in detect(observed, measure, TODAY, STOP)
    }


def test_spark_finds_what_the_core_finds_once_and_says_what_contributed(spark: SparkSession, lake: Lake) -> None:
    found = refresh(spark, lake, STOP)
    assert {(each.series.measure, each.kind, each.began) for each in found} == expected()
    assert refresh(spark, lake, STOP) == []
    assert recorded_anomalies(lake) == found
    spike, silence = (each for each in found if each.series.measure == "rate")
    assert (spike.began, spike.series.subscription) == (bin_time(NOON), TOPIC)
    loader = spike.contributed[0]
    assert (loader.who, loader.messages > 200, loader.usual) == ("loader", True, 0.0)
    assert silence.contributed[0].who == "shop"
    assert silence.contributed[0].messages < silence.contributed[0].usual
    burst = next(each for each in found if (each.series.measure, each.kind) == ("errors", "rule"))
    assert (burst.began, burst.series.subscription) == (bin_time(NOON + 30), "billing")
    died = month_part()[1][NOON - MONDAY :][30:32].sum()
    assert (burst.contributed[0].who, burst.contributed[0].messages) == ("no such customer", died)


class Killed(BaseException):
    """As a process that is killed here."""


def test_in_steps_one_of_them_killed_the_same_are_recorded_once(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(lake_log.TableLog, "carry_out", killed)
        with pytest.raises(Killed):
            refresh(spark, lake, NOON + 2)
    assert recorded_anomalies(lake) == []
    after = refresh(spark, lake, STOP)
    recorded = recorded_anomalies(lake)
    assert {(each.series.measure, each.kind, each.began) for each in recorded} == expected()
    assert len({each.id for each in recorded}) == len(recorded)
    (before,) = (each for each in recorded if each not in after)
    assert (before.began, before.ended) == (bin_time(NOON), None)
    assert lake.exists(ANOMALIES)


def test_what_is_nearly_full_is_told_if_somebody_says_how_full_it_is(spark: SparkSession) -> None:
    rows = [("default", "orders", bin_time(NOON + place), share) for place, share in ((0, 0.7), (1, 0.85), (9, 0.9))]
    usage = spark.createDataFrame(rows, "domain STRING, topic STRING, time TIMESTAMP, share DOUBLE")
    (full,) = watch_usage(usage, NOON, NOON + 10)
    assert (full.series.measure, full.kind, full.began) == ("usage", "rule", bin_time(NOON + 1))
    assert (full.observed, full.expected_high) == (0.9, 0.8)
    assert watch_usage(usage, NOON + 5, NOON + 10) == []


def test_bins_are_those_of_the_traffic_view(spark: SparkSession, written: Lake) -> None:
    messages = read(spark, written, RAW_MESSAGES).where(f"date >= '{bin_time(TODAY).date()}'")
    deliveries = read(spark, written, DELIVERIES).where(f"date >= '{bin_time(TODAY).date()}'")
    rows: Any = binned(messages, deliveries).toPandas()
    of_readers = traffic(messages, deliveries).where("subscription IS NOT NULL")
    view = of_readers.groupBy().sum("published", "settled", "errors").collect()[0]
    assert tuple(view) == (rows["published"].sum(), rows["settled"].sum(), rows["errors"].sum())
    of_noon = rows[rows["bin"] == NOON].set_index("subscription")
    assert of_noon.loc[TOPIC, "published"] == of_noon.loc["billing", "settled"] == month_part()[0][NOON - MONDAY]
    assert of_noon.loc["billing", "latency_ms"] == 20.0
