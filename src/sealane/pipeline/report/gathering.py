"""From the tables of the lake to the figures of the report. Spark counts; what is collected is what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sealane.pipeline.asking import read
from sealane.pipeline.lake.tables import ANOMALIES, DELIVERIES, RAW_HISTORY, RAW_MESSAGES, ROUTE_WEIGHTS, Lake
from sealane.pipeline.proving import Proof
from sealane.pipeline.report.counting import count_dead_letters, count_deliveries, count_traffic
from sealane.pipeline.report.depths import Depths, count_depths
from sealane.pipeline.report.figures import ROWS_SHOWN, Anomaly, Figures, Routes, RouteWeight, Span
from sealane.pipeline.report.proofs import last_proof, proven_by
from sealane.pipeline.report.spans import Asked, micros, moment_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def gather(
    spark: SparkSession,
    lake: Lake,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    proof: Proof | None = None,
    now: datetime | None = None,
) -> Figures:
    """What the tables say of a span, by default of all that is in them. A table that is not there leaves its section
    out. Without a `proof`, the last one that was kept counts. Times without a zone are UTC.
    """
    made = now or datetime.now(UTC)
    proven = last_proof(lake) if proof is None else proven_by(proof, made=made)
    if not lake.exists(RAW_MESSAGES):
        return Figures(made, None, None, None, None, None, 0, proven, None)
    messages = read(spark, lake, RAW_MESSAGES)
    deliveries = read(spark, lake, DELIVERIES) if lake.exists(DELIVERIES) else None
    asked = _asked(messages, deliveries, _utc(since), _utc(until))
    anomalies, anomalies_in_all = (
        _anomalies(read(spark, lake, ANOMALIES), asked) if lake.exists(ANOMALIES) else (None, 0)
    )
    done, dead = None, None
    if deliveries is not None:
        history = read(spark, lake, RAW_HISTORY) if lake.exists(RAW_HISTORY) else None
        depths = Depths({}, ()) if history is None else count_depths(messages, history, deliveries, asked)
        done, dead = count_deliveries(deliveries, depths, asked), count_dead_letters(deliveries, asked)
    return Figures(
        made=made,
        span=asked.span,
        traffic=count_traffic(messages, asked),
        deliveries=done,
        dead_letters=dead,
        anomalies=anomalies,
        anomalies_in_all=anomalies_in_all,
        proven=proven,
        routes=_routes(read(spark, lake, ROUTE_WEIGHTS)) if lake.exists(ROUTE_WEIGHTS) else None,
    )


def _asked(messages: DataFrame, deliveries: DataFrame | None, since: datetime | None, until: datetime | None) -> Asked:
    """From the first message to the last one, or what was settled last, where nothing else is asked for."""
    if since is None or until is None:
        first, last = _bounds(messages, deliveries)
        since = since or first
        until = until or last + timedelta(microseconds=1)
    # Whoever asks for no time at all gets one second.
    until = max(until, since + timedelta(seconds=1))
    return Asked(Span.between(since, until), since, until)


def _bounds(messages: DataFrame, deliveries: DataFrame | None) -> tuple[datetime, datetime]:
    times = messages.selectExpr("created AS time")
    if deliveries is not None:
        times = times.unionAll(deliveries.selectExpr("settled AS time"))
    row = times.selectExpr("unix_micros(min(time)) AS first", "unix_micros(max(time)) AS last").collect()[0]
    return moment_of(row["first"]), moment_of(row["last"])


def _moment(micros_since_1970: int | None) -> datetime | None:
    return None if micros_since_1970 is None else moment_of(micros_since_1970)


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


# --- what others have found -------------------------------------------------------------------------------------------


def _anomalies(table: DataFrame, asked: Asked) -> tuple[tuple[Anomaly, ...], int]:
    """Those that touch the span, the last first, and how many there are in all."""
    from pyspark.sql import functions as f

    first, stop = micros(asked.since), micros(asked.until)
    found = table.withColumns({"began": f.unix_micros("began"), "ended": f.unix_micros("ended")})
    # One that is not over has no end yet.
    touching = found.where(f"began < {stop} AND coalesce(ended, {stop}) >= {first}")
    rows = touching.orderBy(f.desc("began"), f.desc("score")).limit(ROWS_SHOWN).collect()
    in_all = len(rows) if len(rows) < ROWS_SHOWN else touching.count()
    return tuple(_anomaly(row.asDict(), asked) for row in rows), in_all


def _anomaly(row: dict[str, Any], asked: Asked) -> Anomaly:
    ended = row.get("ended")
    return Anomaly(
        topic="/".join(part for part in (row.get("domain"), row.get("topic")) if part),
        subscription=row.get("subscription") or "",
        measure=row.get("measure") or "",
        kind=row.get("kind") or "",
        began=moment_of(row["began"]),
        ended=asked.until if ended is None else moment_of(ended),
        observed=row.get("observed"),
        expected_low=row.get("expected_low"),
        expected_high=row.get("expected_high"),
        score=row.get("score"),
        contributed=_told(row.get("contributed")),
    )


def _told(contributed: str | None) -> str:
    """What is kept as JSON, in words; text that is none is as good."""
    if not contributed:
        return ""
    try:
        return _words(json.loads(contributed))
    except ValueError:
        return contributed


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "; ".join(_words(each) for each in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def _routes(table: DataFrame) -> Routes | None:
    """Of the last version: the weights that hold for every hour, or those of the hour in which they were made."""
    from pyspark.sql import functions as f

    newest = table.agg(f.max("version").alias("version")).collect()[0].version
    if newest is None:
        return None
    rows = table.where(f.col("version") == newest).withColumn("made", f.unix_micros("made")).collect()
    made = _moment(rows[0].made)
    hour = _hour_of(made, {row.hour for row in rows})
    chosen = sorted((row for row in rows if row.hour == hour), key=lambda row: (row.topic != "*", row.topic, row.node))
    return Routes(newest, made, hour, tuple(_weight(row) for row in chosen[:ROWS_SHOWN]))


def _hour_of(made: datetime | None, hours: Iterable[int | None]) -> int | None:
    known = sorted(hour for hour in hours if hour is not None)
    if not known or None in hours:
        return None
    wanted = None if made is None else made.weekday() * 24 + made.hour
    return wanted if wanted in known else known[0]


def _weight(row: Any) -> RouteWeight:
    found = row.asDict()
    optional = (found.get(name) for name in ("expected_ms", "load", "messages"))
    return RouteWeight(row.topic, row.node, row.weight, *optional)
