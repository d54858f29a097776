"""What the tables say to others: anomalies become alerts, and telemetry of routes becomes weights."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

import sealane
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.pipeline.anomalies.alerts import publish_new_alerts
from sealane.pipeline.lake.tables import ANOMALIES, Lake
from sealane.pipeline.routes.publishing import publish_weights
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.anomalies import refresh_anomalies
from sealane.pipeline.steps.routes import refresh_routes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log("sealane.pipeline")

POOL = "telling"
"""Of Spark's scheduler: jobs of it leave half of the cores to those that take in."""


def tell(spark: SparkSession, settings: PipelineSettings, began: datetime) -> None:
    """Look for anomalies in what a cycle has taken in that `began` then, learn routes once an hour, and publish both.

    A principal that may not publish them keeps the tables all the same: that is logged, and tried again.
    """
    lake = Lake(settings.lake)
    refresh_anomalies(spark, lake, settings, now=began)
    weights = refresh_routes(spark, lake, settings, now=began)
    if weights is None and not lake.exists(ANOMALIES):
        return
    try:
        with sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane:
            publish_new_alerts(lane, lake)
            if weights is not None:
                publish_weights(lane, weights)
    except SealaneError as error:
        log.warning("alerts and route weights are in the tables, and could not be published", reason=str(error))


class Telling:
    """Tells beside the cycles. It takes seconds every few minutes, by Spark, for which no fact is to wait.

    It reads files, so nobody may take any away meanwhile; what comes in meanwhile is no matter of the time before.
    """

    def __init__(self, spark: SparkSession, settings: PipelineSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, "sealane-telling")
        self._last: Future[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._last is not None and not self._last.done()

    def begin(self, began: datetime) -> None:
        """Tell what there is of a cycle that `began` then; one that is still under way with another is left to it.
        Raises what has stopped the last one.
        """
        if self.is_under_way:
            return
        if self._last is not None:
            self._last.result()
        self._last = self._thread.submit(self._tell, began)

    def close(self) -> None:
        """Wait for the one that is under way. If it fails, that is done again by the next run."""
        self._thread.shutdown()
        problem = None if self._last is None else self._last.exception()
        if problem is not None:
            log.info("what the tables say was not told to its end", problem=type(problem).__name__)

    def _tell(self, began: datetime) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        tell(self._spark, self._settings, began)
