"""From the tables to bins: the columns of the `traffic` view, for five minutes at a time.

Percentiles of minutes cannot be put together, and a topic that nobody consumes has a rate too: so bins are counted from
the tables, and not from the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sealane.pipeline.anomalies.measures import BIN_SECONDS, LATENCY_SETTLED_FEWEST

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # It ships no types.
    from pyspark.sql import DataFrame

TOPIC = ""
"""As a subscription: what is of the topic itself."""
COLUMNS = ("domain", "topic", "subscription", "bin", "published", "settled", "errors", "latency_ms", "depth")

_P95 = "CAST(percentile_approx(latency_ms, 0.95, 10000) AS DOUBLE)"
_ERRORS = "outcome IN ('dead-lettered', 'expired', 'dropped')"


def binned(messages: DataFrame, deliveries: DataFrame | None) -> DataFrame:
    """What came to each topic, and what each subscription settled: a row for each bin in which there was any."""
    from pyspark.sql import functions as f

    in_bin = f"unix_seconds({{}}) DIV {BIN_SECONDS} AS bin"
    came = (
        messages.selectExpr("domain", "topic", f"'{TOPIC}' AS subscription", in_bin.format("created"))
        .groupBy("domain", "topic", "subscription", "bin")
        .agg(f.count("*").alias("published"))
    )
    if deliveries is None:
        return came.selectExpr("*", "0L AS settled", "0L AS errors", "CAST(NULL AS DOUBLE) AS latency_ms")
    done = (
        deliveries.selectExpr("*", in_bin.format("settled"))
        .groupBy("domain", "topic", "subscription", "bin")
        .agg(
            f.lit(0).cast("bigint").alias("published"),
            f.count("*").alias("settled"),
            f.sum(f.expr(f"IF({_ERRORS}, 1L, 0L)")).alias("errors"),
            f.expr(f"IF(count(latency_ms) >= {LATENCY_SETTLED_FEWEST}, {_P95}, NULL)").alias("latency_ms"),
        )
    )
    return came.unionByName(done, allowMissingColumns=True).na.fill(0, ["published", "settled", "errors"])


def with_depth(rows: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """The rows with `depth`: what was not settled by the end of the bin, as the `traffic` view counts it.

    `before` are the bins before them, with their depth. A row is added for each subscription and bin in which its depth
    has changed. Of the topic itself it is all that was ever published: what a subscription has that settles nothing.
    """
    import pandas as pd

    opening = before.sort_values("bin").groupby(["domain", "topic", "subscription"])["depth"].last()
    found = []
    for place, of_topic in rows.groupby(["domain", "topic"]):
        known = {key[2]: float(depth) for key, depth in opening.items() if key[:2] == place}
        bins = np.sort(of_topic["bin"].unique())
        of_bins = of_topic.groupby(["subscription", "bin"])[["published", "settled", "errors", "latency_ms"]].max()
        published = of_topic.groupby("bin")["published"].sum().reindex(bins, fill_value=0).to_numpy()
        for subscription in sorted({TOPIC, *of_topic["subscription"], *known}):
            each = pd.MultiIndex.from_product([[subscription], bins], names=["subscription", "bin"])
            part = of_bins.reindex(each).reset_index()
            part = part.fillna({"published": 0, "settled": 0, "errors": 0})
            depth = np.cumsum(published - part["settled"].to_numpy()) + known.get(subscription, known.get(TOPIC, 0))
            found.append(part.assign(domain=place[0], topic=place[1], depth=depth))
    empty = pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(found, ignore_index=True)[list(COLUMNS)] if found else empty
