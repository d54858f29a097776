"""What the tables say to others: anomalies become alerts, and telemetry of routes becomes weights."""

from __future__ import annotations

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
