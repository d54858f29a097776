"""What an anomaly is made of: the producers, or the reasons why messages died, whose numbers have changed most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sealane.pipeline.anomalies.anomaly import Anomaly, Contribution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED = 3
"""Who has a longer list does not read it."""
_BEFORE_SECONDS = 86_400
_SPANS = "anomaly INT, domain STRING, topic STRING, subscription STRING, began TIMESTAMP, stop TIMESTAMP"
_ERRORS = "outcome IN ('dead-lettered', 'expired', 'dropped')"


def with_contributions(
    spark: SparkSession, anomalies: Sequence[Anomaly], messages: DataFrame, deliveries: DataFrame | None
) -> list[Anomaly]:
    """The same, with what contributed to those of rates and of errors."""
    found = list(anomalies)
    rates = [index for index, each in enumerate(found) if each.series.measure == "rate"]
    errors = [index for index, each in enumerate(found) if each.series.measure == "errors"]
    parts = []
    if rates:
        rows = messages.selectExpr("domain", "topic", "created AS time", "producer AS who", "date")
        parts.append((rates, rows, ["domain", "topic"]))
    if errors and deliveries is not None:
        who = "coalesce(reason, cause, outcome) AS who"
        rows = deliveries.where(_ERRORS).selectExpr("domain", "topic", "subscription", "settled AS time", who, "date")
        parts.append((errors, rows, ["domain", "topic", "subscription"]))
    for chosen, rows, place in parts:
        for index, contributed in _counted(spark, found, chosen, rows, place).items():
            found[index] = replace(found[index], contributed=contributed)
    return found


def _counted(
    spark: SparkSession, anomalies: list[Anomaly], chosen: list[int], rows: DataFrame, place: list[str]
) -> dict[int, tuple[Contribution, ...]]:
    from pyspark.sql import functions as f

    spans = [_span(index, anomalies[index]) for index in chosen]
    frame = spark.createDataFrame(spans, _SPANS).select("anomaly", *place, "began", "stop")
    first = min(anomalies[index].began for index in chosen).date()
    counted = (
        rows.where(f"date >= date_sub(DATE '{first}', 1)")
        .join(f.broadcast(frame), place)
        .where(f"time < stop AND time >= began - INTERVAL {_BEFORE_SECONDS} SECONDS")
        .groupBy("anomaly", "who")
        .agg(
            f.count_if(f.expr("time >= began")).alias("messages"),
            f.count_if(f.expr("time < began")).alias("before"),
        )
    )
    by_anomaly: defaultdict[int, list[Contribution]] = defaultdict(list)
    for row in counted.collect():
        _, _, _, _, began, stop = spans[chosen.index(row.anomaly)]
        usual = row.before * (stop - began).total_seconds() / _BEFORE_SECONDS
        by_anomaly[row.anomaly].append(Contribution(_name(row.who), row.messages, round(usual, 1)))
    return {
        index: tuple(sorted(all_of, key=lambda each: (-abs(each.messages - each.usual), each.who))[:NAMED])
        for index, all_of in by_anomaly.items()
    }


def _span(index: int, anomaly: Anomaly) -> tuple[int, str, str, str, Any, Any]:
    series = anomaly.series
    return (index, series.domain, series.topic, series.subscription, anomaly.began, anomaly.ended or anomaly.recorded)


def _name(who: object) -> str:
    """As text; a producer's name is bytes of its own choice."""
    if isinstance(who, bytes | bytearray):
        try:
            text = bytes(who).decode()
        except UnicodeDecodeError:
            return bytes(who).hex()
        return text if text.isprintable() else bytes(who).hex()
    return str(who) if who is not None else "unknown"
