"""Reconciliation: every message that was published is settled once, in order, or is still under way; or it is named.

History speaks of runs of offsets, so the balance is drawn of runs: what a subscription has settled must cover, without
a gap and without an overlap, all that it says it has behind it. Only where that does not hold are messages looked at
one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sealane.pipeline.facts.events import SETTLING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Problem = Literal["missing", "duplicated", "out of order"]
PROBLEMS: tuple[Problem, ...] = ("missing", "duplicated", "out of order")

PLACE = ("domain", "topic", "partition")
READER = (*PLACE, "subscription")
ADDRESSED = "addressed"
"""A message that is for one subscription alone, as those that are redriven."""
_SETTLING = ", ".join(f"'{name}'" for name in SETTLING)
_ENDS = (*SETTLING, ADDRESSED)
_FROM = {"settled": "lowest", "settled_above": "greatest(lowest, passed)", "settled_ahead": "greatest(lowest, behind)"}
"""Settled messages are counted from three places on: the first, what was passed over, and all that is behind it."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    balance: DataFrame
    """A row for each subscription of each partition: `published` = the sum of all that became of them."""
    problems: DataFrame
    """A row for each message that breaks it: `problem`, where it is, its `id`, and a `detail`."""


def reconcile(messages: DataFrame, runs: DataFrame) -> Reconciliation:
    """Of what was taken in: `messages` and `runs` are rows of the raw tables, whole partitions of them."""
    from pyspark.sql import functions as f

    readers = _readers(runs).persist()
    settled = _covered(runs, readers)
    places = messages.groupBy(*PLACE).agg(
        f.min("offset").alias("first"), f.max("offset").alias("last"), f.countDistinct("offset").alias("messages")
    )
    places = places.persist()
    never = _named(_gaps(settled, readers), messages, "missing", "the subscription is past it, and never settled it")
    twice = _named(_overlaps(settled), messages, "duplicated", "settled more than once")
    others = (never, twice, _same_ids(messages), _out_of_order(runs, messages))
    problems = reduce(lambda one, other: one.unionByName(other), others, _lost_in_the_log(messages, places))
    return Reconciliation(_balance(settled, readers, places), problems)


# --- what subscriptions say of themselves -----------------------------------------------------------------------------


def _readers(runs: DataFrame) -> DataFrame:
    """Of each subscription: where it began, below which offset it has everything behind it, and what it passed over."""
    from pyspark.sql import functions as f

    word = f.expr("event IN ('subscribed', 'standing')")
    return (
        runs.where("subscription IS NOT NULL")
        .groupBy(*READER)
        .agg(
            f.min_by(f.when(word, f.col("stop")), f.when(word, f.col("entry"))).alias("begin"),
            f.max(f.when(f.expr("event = 'standing'"), f.col("stop"))).alias("floor"),
            f.max(f.when(f.expr("event IN ('advanced', 'sought')"), f.col("stop"))).alias("passed"),
            f.max_by("filter", "entry").alias("filter"),
        )
    )


def _covered(runs: DataFrame, readers: DataFrame) -> DataFrame:
    """Settled runs in the order of their offsets, each with how far those before it reach (`reached`).

    What was addressed to one subscription is none of the others' business: for them it is as good as settled.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = (*READER, "event", "first", "stop")
    addressed = runs.where(f"event = '{ADDRESSED}'").selectExpr(*PLACE, "subscription AS whom", "first", "stop")
    passed_by = (
        addressed.join(f.broadcast(readers.select(*READER)), list(PLACE))
        .where("subscription != whom")
        .withColumn("event", f.lit(ADDRESSED))
    )
    before = Window.partitionBy(*READER).orderBy("first", "stop").rowsBetween(Window.unboundedPreceding, -1)
    return (
        runs.where(f"event IN ({_SETTLING})")
        .select(*columns)
        .unionByName(passed_by.select(*columns))
        .join(f.broadcast(readers.select(*READER, "begin")), list(READER))
        .withColumn("reached", f.coalesce(f.max("stop").over(before), f.col("begin"), f.col("first")))
    )


# --- what breaks the balance ------------------------------------------------------------------------------------------


def _gaps(settled: DataFrame, readers: DataFrame) -> DataFrame:
    """Runs that nothing has settled, and that the subscription says it has behind it; a filter passes over some."""
    from pyspark.sql import functions as f

    inside = settled.where("first > reached").selectExpr(*READER, "reached AS first", "first AS stop")
    ends = settled.groupBy(*READER).agg(f.max(f.greatest("stop", "reached")).alias("end"))
    behind = readers.join(ends, list(READER), "left").selectExpr(
        *READER, "coalesce(end, begin, 0) AS first", "floor AS stop"
    )
    limits = readers.selectExpr(*READER, "coalesce(floor, 0) AS floor", "coalesce(passed, 0) AS passed", "filter")
    return (
        inside.unionByName(behind.where("stop > first"))
        .join(f.broadcast(limits), list(READER))
        # What is above the floor may be under way; what is below a position that was set was passed over on purpose.
        .selectExpr(*READER, "greatest(first, passed) AS first", "least(stop, floor) AS stop", "filter")
        .where("stop > first AND filter IS NULL")
        .drop("filter")
    )


def _overlaps(settled: DataFrame) -> DataFrame:
    return settled.where("first < reached").selectExpr(*READER, "first", "least(stop, reached) AS stop")


def _named(runs: DataFrame, messages: DataFrame, problem: Problem, detail: str) -> DataFrame:
    """The messages of runs, one row each; there are few of them, or something is very wrong."""
    from pyspark.sql import functions as f

    offsets = runs.selectExpr(*READER, "explode(sequence(first, stop - 1)) AS offset").distinct()
    known = messages.select(*PLACE, "offset", "id").join(
        f.broadcast(offsets.select(*PLACE, "offset").distinct()), [*PLACE, "offset"], "left_semi"
    )
    return _problems(offsets.join(known, [*PLACE, "offset"], "left"), problem, f.lit(detail))


def _lost_in_the_log(messages: DataFrame, places: DataFrame) -> DataFrame:
    """Offsets are dense: one that is not there between two that are is a message that is gone."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    broken = places.where("messages != last - first + 1").select(*PLACE)
    order = Window.partitionBy(*PLACE).orderBy("offset")
    holes = (
        messages.join(f.broadcast(broken), list(PLACE), "left_semi")
        .select(*PLACE, "offset")
        .distinct()
        .withColumn("before", f.lag("offset").over(order))
        .where("offset > before + 1")
        .selectExpr(*PLACE, "explode(sequence(before + 1, offset - 1)) AS offset")
        .withColumns({"subscription": f.lit(None).cast("string"), "id": f.lit(None).cast("binary")})
    )
    return _problems(holes, "missing", f.lit("not in the log between its neighbours"))


def _same_ids(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    twice = messages.groupBy("domain", "topic", "id").count().where("count > 1").drop("count")
    found = messages.select(*PLACE, "offset", "id").join(f.broadcast(twice), ["domain", "topic", "id"], "left_semi")
    return _problems(
        found.withColumn("subscription", f.lit(None).cast("string")), "duplicated", f.lit("another message has this id")
    )


def _out_of_order(runs: DataFrame, messages: DataFrame) -> DataFrame:
    """First grants of a partition go up, unless a message is more or less urgent than others, or was to wait."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    granted = runs.where("event = 'granted'").select(*READER, "entry", "first", "stop")
    before = Window.partitionBy(*READER).orderBy("entry", "first").rowsBetween(Window.unboundedPreceding, -1)
    reached = granted.withColumn("reached", f.max("stop").over(before)).where("first < reached")
    offsets = [*READER, "offset"]
    suspects = reached.selectExpr(*READER, "entry", "explode(sequence(first, least(stop, reached) - 1)) AS offset")
    earlier = suspects.groupBy(*offsets).agg(f.min("entry").alias("entry"))
    # Who was granted before is granted again here, which is no first grant.
    again = (
        granted.alias("g")
        .join(f.broadcast(earlier).alias("s"), list(READER))
        .where("s.offset >= g.first AND s.offset < g.stop AND g.entry < s.entry")
        .select(*offsets)
        .distinct()
    )
    plain = messages.where("priority = 5 AND deliver_at IS NULL").select(*PLACE, "offset", "id")
    late = earlier.join(again, offsets, "left_anti").join(plain, [*PLACE, "offset"])
    return _problems(late, "out of order", f.lit("first handed out after a later one"))


def _problems(rows: DataFrame, problem: Problem, detail: Column) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.select(
        f.lit(problem).alias("problem"),
        *PLACE,
        f.col("offset").cast("bigint").alias("offset"),
        f.col("id").cast("binary").alias("id"),
        f.col("subscription").cast("string").alias("subscription"),
        detail.alias("detail"),
    )


# --- the balance ------------------------------------------------------------------------------------------------------


def _balance(settled: DataFrame, readers: DataFrame, places: DataFrame) -> DataFrame:
    """`published` is the sum of the others: what settled them, what was passed over on purpose (or was another's), what
    is `in_flight`, and what is `missing`, behind the subscription and settled by nothing.
    """
    from pyspark.sql import functions as f

    known = readers.join(places, list(PLACE)).selectExpr(
        *READER,
        "greatest(begin, first) AS first",
        "last + 1 AS stop",
        # A filter passes over what it leaves out.
        "coalesce(greatest(passed, IF(filter IS NULL, NULL, floor)), 0) AS passed",
        "coalesce(floor, 0) AS floor",
    )
    # What was settled twice counts once.
    bounds = known.selectExpr(*READER, "first AS lowest", "passed", "greatest(floor, passed) AS behind")
    once = settled.join(f.broadcast(bounds), list(READER)).selectExpr(
        *READER,
        "event",
        *(f"greatest(stop - greatest(first, reached, {low}), 0) AS {name}" for name, low in _FROM.items()),
    )
    sums = [f.sum(f.when(f.expr(f"event = '{name}'"), f.col("settled"))).alias(name) for name in _ENDS]
    counted = once.groupBy(*READER).agg(*sums, *(f.sum(name).alias(name) for name in _FROM))
    return (
        known.join(counted, list(READER), "left")
        .selectExpr(
            *READER,
            "greatest(stop - first, 0) AS published",
            *(f"coalesce(`{name}`, 0) AS {name.replace('-', '_')}" for name in _ENDS),
            "greatest(passed - first, 0) - coalesce(settled - settled_above, 0) AS skipped",
            "greatest(stop - greatest(first, floor, passed), 0) - coalesce(settled_ahead, 0) AS in_flight",
        )
        .selectExpr(
            *(*READER, "published", "acked", "dead_lettered", "expired", "dropped"),
            "skipped + addressed AS passed_over",
            "in_flight",
            "published - acked - dead_lettered - expired - dropped - addressed - skipped - in_flight AS missing",
        )
    )
