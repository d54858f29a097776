"""Every series of a topic is looked at, by Spark, a topic at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sealane.pipeline.anomalies.anomaly import Anomaly, Series, anomaly_of
from sealane.pipeline.anomalies.binning import TOPIC
from sealane.pipeline.anomalies.detecting import LOOK_BACK_BINS, Finding, detect
from sealane.pipeline.anomalies.measures import BIN_SECONDS, DEPTH, ERRORS, LATENCY, MEASURES, RATE, USAGE, Floats
from sealane.pipeline.anomalies.observed import Observed, carried_on, laid_out

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # It ships no types.
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_FOUND = (
    "domain STRING, topic STRING, subscription STRING, measure STRING, kind STRING, first BIGINT, stop BIGINT, "
    "is_over BOOLEAN, observed DOUBLE, expected_low DOUBLE, expected_high DOUBLE, score DOUBLE"
)


def watch(spark: SparkSession, bins: pa.Table, begin: int, stop: int) -> list[Anomaly]:
    """The anomalies that begin in the bins from `begin` on and before `stop`. `bins` has the days before them too."""
    if not len(bins):
        return []
    found = spark.createDataFrame(bins).groupBy("domain", "topic")
    # Spark looks at the types of what it calls, and warns of those that it cannot resolve: a lambda has none.
    rows = found.applyInPandas(lambda rows: _findings(rows, begin, stop), _FOUND).collect()
    anomalies = []
    for row in rows:
        series = Series(row.domain, row.topic, row.subscription, MEASURES[row.measure].name)
        finding = Finding(*(row[name] for name in Finding.__dataclass_fields__))
        anomalies.append(anomaly_of(series, finding, stop))
    return sorted(anomalies, key=lambda each: (each.began, str(each.id)))


def watch_usage(usage: DataFrame, begin: int, stop: int) -> list[Anomaly]:
    """The same of how full things are: rows of `domain`, `topic`, `time` and `share` of a limit, from a day before
    `begin` on. It has no baseline, only its threshold.
    """
    from pyspark.sql import functions as f

    rows: pd.DataFrame = (
        usage.selectExpr("domain", "topic", f"unix_seconds(time) DIV {BIN_SECONDS} AS bin", "share")
        .where(f"bin >= {begin - LOOK_BACK_BINS} AND bin < {stop}")
        .groupBy("domain", "topic", "bin")
        .agg(f.max("share").alias("share"))
        .toPandas()
    )
    anomalies = []
    for (domain, topic), of_topic in rows.groupby(["domain", "topic"]):
        first = int(of_topic["bin"].min())
        observed = Observed(first, carried_on(_column(of_topic, first, stop, "share", np.nan)))
        series = Series(str(domain), str(topic), TOPIC, USAGE.name)
        anomalies += [anomaly_of(series, finding, stop) for finding in detect(observed, USAGE, begin, stop)]
    return anomalies


def series_of(rows: pd.DataFrame, stop: int) -> Iterator[tuple[Series, Observed]]:
    """The series that the bins of one topic are, up to `stop`. Without a message, its rate is 0, its latency is not
    known, and its depth is what it was.
    """
    domain, topic = rows["domain"].iloc[0], rows["topic"].iloc[0]
    for subscription, of_reader in rows.groupby("subscription"):
        first = int(of_reader["bin"].min())
        column = partial(_column, of_reader, first, stop)
        if subscription == TOPIC:
            yield Series(domain, topic, TOPIC, RATE.name), Observed(first, column("published", 0.0))
            continue
        settled = column("settled", 0.0)
        latency, depth = column("latency_ms", np.nan), carried_on(column("depth", np.nan))
        yield Series(domain, topic, str(subscription), LATENCY.name), Observed(first, latency)
        yield Series(domain, topic, str(subscription), ERRORS.name), Observed(first, column("errors", 0.0), settled)
        yield Series(domain, topic, str(subscription), DEPTH.name), Observed(first, depth)


def _column(rows: pd.DataFrame, first: int, stop: int, name: str, missing: float) -> Floats:
    return laid_out(rows["bin"].to_numpy(np.int64), rows[name].to_numpy(np.float64), first, stop, missing=missing)


def _findings(rows: pd.DataFrame, begin: int, stop: int) -> pd.DataFrame:
    import pandas as pd

    found = [
        (*astuple(series), *astuple(finding))
        for series, observed in series_of(rows, stop)
        for finding in detect(observed, MEASURES[series.measure], begin, stop)
    ]
    return pd.DataFrame(found, columns=[column.split()[0] for column in _FOUND.split(", ")])
