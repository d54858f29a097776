"""Route weights are made once an hour: what is new in the telemetry comes in, and becomes the next version."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sealane
from sealane.errors import TopicNotFound
from sealane.log import get_log
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.routes.curves import LOOKBACK_HOURS
from sealane.pipeline.routes.hours import seen_by_spark
from sealane.pipeline.routes.learning import learn
from sealane.pipeline.routes.recording import begins, last_valid, record, recorded
from sealane.pipeline.routes.remembering import added, remember, remembered
from sealane.pipeline.routes.telemetry import TELEMETRY_COLUMNS, TELEMETRY_TOPIC
from sealane.pipeline.settings import PipelineSettings
from sealane.routing.weights import ANY_TOPIC, RouteWeights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE_HOURS = 2
"""Telemetry that comes later than this after its hour is not waited for."""

log = get_log("sealane.pipeline")


def refresh_routes(
    spark: SparkSession,
    lake: Lake,
    settings: PipelineSettings,
    *,
    now: datetime | None = None,
    telemetry: DataFrame | None = None,
) -> RouteWeights | None:
    """The weights for the hour that it is now, to be published; None while nothing is known of any node.

    The hour is the version. Its weights are made once: whoever asks again, after a crash too, gets those that are in
    the table. `telemetry` has the columns of `TELEMETRY_SCHEMA`; without it, the node's topic is read.
    """
    now = datetime.now(UTC) if now is None else now
    version = int(now.timestamp()) // 3600
    done = recorded(lake, version)
    if done is not None:
        return done
    before = remembered(lake, version)
    first = max(before["hour"].to_pylist(), default=version - LOOKBACK_HOURS) - LATE_HOURS
    if telemetry is None:
        telemetry = _told(spark, settings, first)
    if telemetry is None and not len(before):
        return None
    new = before.slice(0, 0) if telemetry is None else seen_by_spark(telemetry, first, version)
    seen = added(before, new, version)
    previous = last_valid(lake, version)
    learned = learn(seen, version, None if previous is None else previous.weights[ANY_TOPIC])
    if learned is None:
        return None
    # What was seen is kept first: the version is made when it is in the table, and is made from the same until then.
    remember(lake, version, seen)
    record(spark, lake, version, now, learned)
    log.info("route weights are made", version=version, hour=learned.hour, nodes=len(learned.routes))
    return recorded(lake, version)


def _told(spark: SparkSession, settings: PipelineSettings, first: int) -> DataFrame | None:
    """The telemetry since an hour, as the node has it; None if nobody has told anything yet."""
    with sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane:
        try:
            lane.logs(TELEMETRY_TOPIC)
        except TopicNotFound:
            return None
    options = {name: text for name, text in settings.source.items() if name in ("url", "profile", "data")}
    told = spark.read.format("sealane").options(
        **options,
        topic=TELEMETRY_TOPIC,
        startingTimestamp=begins(first).strftime("%Y-%m-%dT%H:%M:%SZ"),
        valueFormat="json",
        valueSchema=TELEMETRY_COLUMNS,
    )
    return told.load().where("_corrupt IS NULL").select("value.*")
