"""Figures of the report, gathered from small tables that were written by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealane.pipeline.facts.deliveries import facts_of, gathered
from sealane.pipeline.facts.events import events_of, runs_of
from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import (
    ANOMALIES,
    DELIVERIES,
    RAW_HISTORY,
    RAW_MESSAGES,
    ROUTE_WEIGHTS,
    Lake,
    Table,
)
from sealane.pipeline.report.figures import Figures, Series
from sealane.pipeline.report.gathering import gather
from sealane.pipeline.report.page import render
from sealane.spark.source.spark_types import message_columns
from tests.spark.pipeline.told import START, Told, framed, laid_out, message_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = timedelta(minutes=1)


def test_the_tables_become_figures_and_a_page(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    nothing = gather(spark, lake, now=START)
    assert (nothing.span, nothing.traffic) == (None, None)

    _take_in(spark, lake)
    figures = gather(spark, lake, now=START)
    _check_what_came(figures)
    _check_what_became_of_it(figures)
    assert (figures.anomalies, figures.routes, figures.proven) == (None, None, None)
    assert "There is nothing to tell yet" in render(nothing)

    _find(spark, lake)
    later = gather(spark, lake, since=START + 2 * MINUTE, until=START + 3 * MINUTE, now=START)
    _check_what_others_found(later)
    assert later.deliveries is not None
    assert (later.traffic is not None, later.traffic and later.traffic.published) == (True, 1)
    assert (later.deliveries.settled, later.deliveries.dead) == (1, 1)
    # What was left to do before the span began is left to do in it.
    assert [set(each.values) for each in later.deliveries.depth if each.name == "default/orders audit"] == [{8.0}]
    assert "Dead letters" in render(later)


def known(series: Series) -> dict[int, float]:
    """By their steps, what is neither unknown nor zero."""
    return {step: value for step, value in enumerate(series.values) if value}


def _check_what_came(figures: Figures) -> None:
    assert figures.span is not None
    assert figures.traffic is not None
    assert (figures.span.since, figures.span.steps, figures.span.step_seconds) == (START, 151, 1)
    assert [(each.name, each.published) for each in figures.traffic.topics] == [
        ("default/orders", 10),
        ("other/<b>", 1),
    ]
    assert {each.name: known(each) for each in figures.traffic.by_topic} == {
        "default/orders": {0: 10},
        "other/<b>": {132: 1},
    }
    # START is a Saturday at noon.
    assert (figures.traffic.published, figures.traffic.by_hour[5][12]) == (11, 11)


def _check_what_became_of_it(figures: Figures) -> None:
    assert figures.deliveries is not None
    assert figures.dead_letters is not None
    done = figures.deliveries
    assert (done.settled, done.dead) == (5, 1)
    assert done.error_ratio.values[:4] == (None, None, 0.0, None)
    assert known(done.error_ratio) == {150: 1.0}
    assert known(done.latency_ms[0]) == {2: 2000.0, 150: 150_000.0}
    left = {(each.topic, each.subscription): (each.settled, each.errors, each.depth) for each in done.readers}
    # Audit began at offset 2; what is filtered cannot be told.
    assert left == {
        ("default/orders", "billing"): (5, 1, 5),
        ("default/orders", "audit"): (0, 0, 8),
    }
    depths = {each.name: [each.values[step] for step in (0, 2, 149, 150)] for each in done.depth}
    assert depths == {"default/orders billing": [10, 6, 6, 5], "default/orders audit": [8, 8, 8, 8]}
    (letters,) = figures.dead_letters
    assert (letters.reason, letters.messages, letters.first) == ("no address", 1, START + 2.5 * MINUTE)
    assert letters.redrive == "sealane dlq redrive default/orders billing"


def _check_what_others_found(figures: Figures) -> None:
    assert figures.anomalies is not None
    assert figures.routes is not None
    assert [(each.topic, each.measure, each.contributed) for each in figures.anomalies] == [
        ("default/orders", "rate", "producer web-1, share 0.612")
    ]
    assert (figures.anomalies[0].ended, figures.anomalies_in_all) == (START + 3 * MINUTE, 1)
    assert (figures.routes.version, figures.routes.hour) == (2, None)
    assert [(each.node, each.weight, each.messages) for each in figures.routes.weights] == [
        ("a", 0.75, 5),
        ("b", 0.25, None),
    ]


# --- the tables -------------------------------------------------------------------------------------------------------


def _take_in(spark: SparkSession, lake: Lake) -> None:
    """Ten orders and one message of another topic; billing settles four, and one dies, and audit has yet to begin."""
    other = {"domain": "other", "topic": "<b>", "created": START + 2.2 * MINUTE}
    rows = [*message_rows(10), {**message_rows(1)[0], **other}]
    messages = laid_out(framed(spark, rows, message_columns()))
    told = Told()
    told.tell("subscribed", (0, 0))
    told.tell("granted", (0, 5), lease=1, consumer="anna")
    told.tell("acked", (0, 4), lease=1)
    told.tell("failed", (4, 5), lease=1, cause="nack", reason="no address")
    told.tell("dead-lettered", (4, 5), lease=1, time=START + 2.5 * MINUTE)
    told.tell("subscribed", (0, 2), subscription="audit")
    told.tell("subscribed", (0, 0), subscription="choosy", filter="key = 'x'")
    runs = runs_of(told.frame(spark)).selectExpr("*", "to_date(time) AS date")
    settled = gathered(events_of(runs)).where("outcome IS NOT NULL")
    _append(lake, RAW_MESSAGES, messages)
    _append(lake, RAW_HISTORY, runs)
    _append(lake, DELIVERIES, facts_of(settled, messages))


def _find(spark: SparkSession, lake: Lake) -> None:
    """One anomaly that goes on, and one that was over before; and two versions of weights."""
    because = '{"producer": "web-1", "share": 0.6123}'
    anomalies: list[tuple[Any, ...]] = [
        ("default", "orders", None, "rate", "baseline", START + MINUTE, None, 40.0, 1.0, 9.0, 7.0, because),
        ("default", "orders", None, "rate", "baseline", START, START + MINUTE, 40.0, 1.0, 9.0, 7.0, None),
    ]
    columns = (
        "domain STRING, topic STRING, subscription STRING, measure STRING, kind STRING, "
        "began TIMESTAMP, ended TIMESTAMP, "
        "observed DOUBLE, expected_low DOUBLE, expected_high DOUBLE, score DOUBLE, contributed STRING"
    )
    _append(lake, ANOMALIES, spark.createDataFrame(anomalies, columns).selectExpr("*", "to_date(began) AS date"))
    weights: list[tuple[Any, ...]] = [
        (1, START, None, "*", "a", 1.0, 3.0, 0.5, 5),
        (2, START, None, "*", "b", 0.25, None, None, None),
        (2, START, None, "*", "a", 0.75, 3.0, 0.5, 5),
    ]
    columns = (
        "version BIGINT, made TIMESTAMP, hour INT, topic STRING, node STRING, weight DOUBLE, "
        "expected_ms DOUBLE, load DOUBLE, messages BIGINT"
    )
    _append(lake, ROUTE_WEIGHTS, spark.createDataFrame(weights, columns).selectExpr("*", "to_date(made) AS date"))


def _append(lake: Lake, table: Table, rows: DataFrame) -> None:
    append_rows(lake, table, rows.coalesce(1), writer="test", number=1)
