"""From the tables to bins: the columns of the `traffic` view, for five minutes at a time.

Percentiles of minutes cannot be put together, and a topic that nobody consumes has a rate too: so bins are counted from
the tables, and not from the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sealane.pipeline.anomalies.measures import BIN_SECONDS, LATENCY_SETTLED_FEWEST
from sealane.pipeline.facts.beginnings import READER
from sealane.pipeline.facts.stored import PLACE

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # It ships no types.
    from pyspark.sql import DataFrame

TOPIC = ""
"""As a subscription: what is of the topic itself."""
COLUMNS = ("domain", "topic", "subscription", "bin", "published", "settled", "errors", "latency_ms", "depth")

_NAMED = ("domain", "topic", "subscription")
_OBSERVED = ("published", "settled", "errors", "latency_ms")
_P95 = "CAST(percentile_approx(latency_ms, 0.95, 10000) AS DOUBLE)"
_ERRORS = "outcome IN ('dead-lettered', 'expired', 'dropped')"


def binned(messages: DataFrame, deliveries: DataFrame | None, base: DataFrame | None = None) -> DataFrame:
    """What came to each topic, and what each subscription settled: a row for each bin in which there was any.

    `base` is the first offset that is for a subscription, in each partition (`beginnings`). With it, `change` is by how
    much more a subscription has to do after the bin than before it.
    """
    from pyspark.sql import functions as f

    came = (
        messages.selectExpr("domain", "topic", f"'{TOPIC}' AS subscription", _in_bin("created"))
        .groupBy(*_NAMED, "bin")
        .agg(f.count("*").alias("published"))
    )
    if deliveries is None:
        done = came.where("false").selectExpr(
            *_NAMED, "bin", "0L AS settled", "0L AS errors", "CAST(NULL AS DOUBLE) AS latency_ms"
        )
    else:
        done = (
            deliveries.selectExpr("*", _in_bin("settled"))
            .groupBy(*_NAMED, "bin")
            .agg(
                f.count("*").alias("settled"),
                f.sum(f.expr(f"IF({_ERRORS}, 1L, 0L)")).alias("errors"),
                f.expr(f"IF(count(latency_ms) >= {LATENCY_SETTLED_FEWEST}, {_P95}, NULL)").alias("latency_ms"),
            )
        )
    rows = came.unionByName(done, allowMissingColumns=True)
    if base is None:
        rows = rows.withColumn("change", f.lit(None).cast("bigint"))
    else:
        changes = _changes(messages, deliveries, base).groupBy(*_NAMED, "bin").agg(f.sum("change").alias("change"))
        rows = rows.join(changes, [*_NAMED, "bin"], "full")
    return rows.na.fill(0, ["published", "settled", "errors"])


def left_before(messages: DataFrame, deliveries: DataFrame | None, base: DataFrame) -> DataFrame:
    """What each subscription of `base` has left to do of all these messages: a row for each, with its `depth`."""
    from pyspark.sql import functions as f

    return _changes(messages, deliveries, base).groupBy(*_NAMED).agg(f.sum("change").alias("depth"))


def _changes(messages: DataFrame, deliveries: DataFrame | None, base: DataFrame) -> DataFrame:
    """What came for a subscription in a bin, and what it has settled: what was there before it is not for it to do."""
    from pyspark.sql import functions as f

    base = f.broadcast(base.where("base IS NOT NULL"))
    came = messages.select(*PLACE, "offset", "created").join(base, list(PLACE)).where("offset >= base")
    counted = came.selectExpr(*_NAMED, _in_bin("created")).groupBy(*_NAMED, "bin").agg(f.count("*").alias("change"))
    if deliveries is None:
        return counted
    done = deliveries.select(*READER, "offset", "settled").join(base, list(READER)).where("offset >= base")
    settled = done.selectExpr(*_NAMED, _in_bin("settled")).groupBy(*_NAMED, "bin")
    return counted.unionByName(settled.agg((-f.count("*")).alias("change")))


def _in_bin(moment: str) -> str:
    return f"unix_seconds({moment}) DIV {BIN_SECONDS} AS bin"


def with_depth(rows: pd.DataFrame, before: pd.DataFrame, opening: pd.DataFrame | None = None) -> pd.DataFrame:
    """The rows with `depth`: what was not settled by the end of the bin, as the `traffic` view counts it.

    `before` are the bins before them, with their depth; `opening` is the depth of subscriptions that are in none of
    those. A row is added for each subscription and bin in which its depth has changed. Of the topic itself it is all
    that was ever published. Of a subscription of which nobody says what is for it, it is not known.
    """
    import pandas as pd

    depths = before.sort_values("bin").groupby(list(_NAMED))["depth"].last()
    if opening is not None and len(opening):
        depths = pd.concat([opening.groupby(list(_NAMED))["depth"].sum(), depths])
    found = []
    for place, of_topic in rows.groupby(["domain", "topic"]):
        known = {key[2]: float(depth) for key, depth in depths.items() if key[:2] == place}
        bins = np.sort(of_topic["bin"].unique())
        of_bins = of_topic.groupby(["subscription", "bin"])[[*_OBSERVED, "change"]].max()
        for subscription in sorted({TOPIC, *of_topic["subscription"], *known}):
            each = pd.MultiIndex.from_product([[subscription], bins], names=["subscription", "bin"])
            part = of_bins.reindex(each).reset_index()
            is_told = subscription == TOPIC or part["change"].notna().any() or subscription in known
            part = part.fillna({"published": 0, "settled": 0, "errors": 0, "change": 0})
            change = part["published"] if subscription == TOPIC else part["change"]
            depth = np.cumsum(change.to_numpy(np.float64)) + known.get(subscription, 0.0)
            found.append(part.assign(domain=place[0], topic=place[1], depth=depth if is_told else np.nan))
    empty = pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(found, ignore_index=True)[list(COLUMNS)] if found else empty
