"""Reconciliation: every message that was published is settled once, in order, or is still under way; or it is named.

History speaks of runs of offsets, so the balance is drawn of runs: what a subscription has settled must cover, without
a gap and without an overlap, all that it says it has behind it. Only where that does not hold are messages looked at
one by one: those that are suspected are few, and are sent to wherever messages are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sealane.pipeline.facts.beginnings import READER, where_it_was
from sealane.pipeline.facts.events import SETTLING
from sealane.pipeline.facts.stored import PLACE, cells_of, holes_of, places_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Problem = Literal["missing", "duplicated", "out of order"]
PROBLEMS: tuple[Problem, ...] = ("missing", "duplicated", "out of order")

ADDRESSED = "addressed"
"""A message that is for one subscription alone, as those that are redriven."""
FEW = 1_000_000
"""Rows that may be sent to every task; more than that are joined by a shuffle of both sides."""
RUN_NAMED = 100_000
"""Of one run that breaks the balance, so many messages are named: the balance has the number of all."""

_SETTLING = ", ".join(f"'{name}'" for name in SETTLING)
_ENDS = (*SETTLING, ADDRESSED)
_FROM = {"settled": "lowest", "settled_above": "greatest(lowest, passed)", "settled_ahead": "greatest(lowest, behind)"}
"""Settled messages are counted from three places on: the first, what was passed over, and all that is behind it."""
_BLOCK = 1_024
"""Runs are compared with offsets block by block: a long journal is not compared with itself as a whole."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    balance: DataFrame
    """A row for each subscription of each partition: `published` = the sum of all that became of them."""
    problems: DataFrame
    """A row for each message that breaks it: `problem`, where it is, its `id`, and a `detail`."""
    release: Callable[[], None]
    """Gives back what Spark keeps for both, once they were asked for."""


def reconcile(
    messages: DataFrame, runs: DataFrame, *, since: datetime | None = None, until: datetime | None = None
) -> Reconciliation:
    """Of what was taken in: `messages` and `runs` are rows of the raw tables, whole partitions of them.

    A window is, of each partition, all from the first to the last message that was created in it: whatever happened to
    those since then counts, and of the others nothing does.
    """
    from pyspark.sql import functions as f

    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return kept[-1]

    def few(frame: DataFrame) -> DataFrame:
        return f.broadcast(frame) if keep(frame).count() <= FEW else frame

    cells = keep(cells_of(messages, since, until))
    places = keep(places_of(cells))
    readers = keep(_readers(runs))
    settled = keep(_covered(runs, readers))
    suspected = reduce(
        lambda one, other: one.unionByName(other),
        (
            _suspected(_gaps(settled, readers), places, "missing", "the subscription is past it, and never settled it"),
            _suspected(_overlaps(settled), places, "duplicated", "settled more than once"),
            _suspected(_out_of_order(runs, few), places, "out of order", "first handed out after a later one"),
        ),
    )
    problems = (
        _named(few(suspected), messages)
        .unionByName(_lost_in_the_log(holes_of(cells), places))
        .unionByName(_same_ids(messages, places, few))
    )

    def release() -> None:
        for frame in kept:
            frame.unpersist()

    return Reconciliation(_balance(settled, readers, places), problems, release)


# --- what subscriptions say of themselves -----------------------------------------------------------------------------


def _readers(runs: DataFrame) -> DataFrame:
    """Of each subscription: where it began, below which offset it has everything behind it, what it passed over, and
    when it was set back or forward, or began once more.
    """
    from pyspark.sql import functions as f

    turn = f.expr("event IN ('subscribed', 'sought')")
    return (
        runs.where("subscription IS NOT NULL")
        .groupBy(*READER)
        .agg(
            *where_it_was(),
            f.max(f.when(f.expr("event = 'standing'"), f.col("stop"))).alias("floor"),
            f.collect_list(f.when(turn, f.col("entry"))).alias("turns"),
        )
    )


def _covered(runs: DataFrame, readers: DataFrame) -> DataFrame:
    """Settled runs in the order of their offsets, each with how far those before it reach (`reached`), and how far
    those of the same turn do: what was set back on purpose is settled again.

    What was addressed to one subscription is none of the others' business: for them it is as good as settled.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = (*READER, "event", "entry", "first", "stop")
    addressed = runs.where(f"event = '{ADDRESSED}'").selectExpr(*PLACE, "subscription AS whom", *columns[5:])
    passed_by = (
        addressed.join(f.broadcast(readers.select(*READER)), list(PLACE))
        .where("subscription != whom")
        .withColumn("event", f.lit(ADDRESSED))
    )
    before = Window.partitionBy(*READER).orderBy("first", "stop").rowsBetween(Window.unboundedPreceding, -1)
    in_turn = Window.partitionBy(*READER, "turn").orderBy("first", "stop").rowsBetween(Window.unboundedPreceding, -1)
    return (
        runs.where(f"event IN ({_SETTLING})")
        .select(*columns)
        .unionByName(passed_by.select(*columns))
        .join(f.broadcast(readers.select(*READER, "begin", "turns")), list(READER))
        .withColumn("turn", f.expr("size(filter(turns, each -> each < entry))"))
        .withColumn("reached", f.coalesce(f.max("stop").over(before), f.col("begin"), f.col("first")))
        .withColumn("reached_in_turn", f.coalesce(f.max("stop").over(in_turn), f.col("first")))
        .drop("begin", "turns", "turn")
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
    found = settled.where("first < reached_in_turn")
    return found.selectExpr(*READER, "first", "least(stop, reached_in_turn) AS stop")


def _out_of_order(runs: DataFrame, few: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """First grants of a partition go up. Of those that do not, each message is a run of its own here; it may be more or
    less urgent than others, or was to wait.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    granted = runs.where("event = 'granted'").select(*READER, "entry", "first", "stop")
    before = Window.partitionBy(*READER).orderBy("entry", "first").rowsBetween(Window.unboundedPreceding, -1)
    reached = granted.withColumn("reached", f.max("stop").over(before)).where("first < reached")
    offsets = [*READER, "offset"]
    again = reached.selectExpr(*READER, "entry", "explode(sequence(first, least(stop, reached) - 1)) AS offset")
    # Who was granted before is granted again here, which is no first grant.
    suspects = few(again.groupBy(*offsets).agg(f.min("entry").alias("entry")))
    blocks = granted.selectExpr("*", f"explode(sequence(first DIV {_BLOCK}, (stop - 1) DIV {_BLOCK})) AS block")
    known = (
        blocks.alias("g")
        .join(suspects.withColumn("block", f.expr(f"offset DIV {_BLOCK}")).alias("s"), [*READER, "block"])
        .where("s.offset >= g.first AND s.offset < g.stop AND g.entry < s.entry")
        .select(*offsets)
        .distinct()
    )
    late = suspects.join(known, offsets, "left_anti")
    return late.selectExpr(*READER, "offset AS first", "offset + 1 AS stop")


def _suspected(runs: DataFrame, places: DataFrame, problem: Problem, detail: str) -> DataFrame:
    """The offsets of runs, as far as they are in the window."""
    from pyspark.sql import functions as f

    window = places.selectExpr(*PLACE, "first AS window_first", "stop AS window_stop")
    return (
        runs.join(f.broadcast(window), list(PLACE))
        .selectExpr(*READER, "greatest(first, window_first) AS first", "least(stop, window_stop) AS stop")
        .where("stop > first")
        .selectExpr(*READER, f"explode(sequence(first, least(stop, first + {RUN_NAMED}) - 1)) AS offset")
        .distinct()
        .withColumns({"problem": f.lit(problem), "detail": f.lit(detail)})
    )


def _named(suspected: DataFrame, messages: DataFrame) -> DataFrame:
    """The suspected messages, with their ids. One that is not stored is not here: it is a hole in the log."""
    plain = "priority = 5 AND deliver_at IS NULL AS plain"
    known = messages.selectExpr(*PLACE, "offset", "id", plain).join(suspected, [*PLACE, "offset"])
    return _problems(known.where("plain OR problem != 'out of order'"))


def _lost_in_the_log(holes: DataFrame, places: DataFrame) -> DataFrame:
    """Offsets are dense: one that is not there between two that are is a message that is gone. It is part of a window
    if the next message is.
    """
    from pyspark.sql import functions as f

    window = places.selectExpr(*PLACE, "first AS window_first", "stop AS window_stop")
    gone = (
        holes.join(f.broadcast(window), list(PLACE))
        .where("stop >= window_first AND stop < window_stop")
        .selectExpr(*PLACE, f"explode(sequence(first, least(stop, first + {RUN_NAMED}) - 1)) AS offset")
    )
    detail = f.lit("not in the log between its neighbours")
    return _problems(
        gone.withColumns({"problem": f.lit("missing"), "detail": detail, **_no_reader(), "id": f.lit(None)})
    )


def _same_ids(messages: DataFrame, places: DataFrame, few: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Ids are compared by a hash first: eight bytes of each message are shuffled, and whole ids of almost none."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    hashed = messages.select(*PLACE, "offset", "id", f.xxhash64("domain", "topic", "id").alias("hash"))
    # Almost all are different: to count them before they are shuffled would only take time.
    shuffled = hashed.select("hash").repartition("hash")
    twice = few(shuffled.groupBy("hash").count().where("count > 1").select("hash"))
    same = Window.partitionBy("domain", "topic", "id")
    found = (
        hashed.join(twice, "hash", "left_semi")
        .withColumn("messages", f.count("*").over(same))
        .where("messages > 1")
        .join(f.broadcast(places), list(PLACE))
        .where("offset >= first AND offset < stop")
    )
    detail = f.lit("another message has this id")
    return _problems(found.withColumns({"problem": f.lit("duplicated"), "detail": detail, **_no_reader()}))


def _no_reader() -> dict[str, Column]:
    from pyspark.sql import functions as f

    return {"subscription": f.lit(None)}


def _problems(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(
        "problem",
        *PLACE,
        "CAST(offset AS BIGINT) AS offset",
        "CAST(id AS BINARY) AS id",
        "CAST(subscription AS STRING) AS subscription",
        "detail",
    )


# --- the balance ------------------------------------------------------------------------------------------------------


def _balance(settled: DataFrame, readers: DataFrame, places: DataFrame) -> DataFrame:
    """`published` is the sum of the others: what settled them, what was passed over on purpose (or was another's), what
    is `in_flight`, and what is `missing`, behind the subscription and settled by nothing.
    """
    from pyspark.sql import functions as f

    known = readers.join(places, list(PLACE)).selectExpr(
        *READER,
        "least(greatest(begin, first), stop) AS first",
        "stop",
        # A filter passes over what it leaves out.
        "least(coalesce(greatest(passed, IF(filter IS NULL, NULL, floor)), 0), stop) AS passed",
        "least(coalesce(floor, 0), stop) AS floor",
    )
    # What was settled twice counts once. History comes in after messages, and may tell of some that are not here yet.
    bounds = known.selectExpr(
        *READER, "first AS lowest", "stop AS highest", "passed", "greatest(floor, passed) AS behind"
    )
    once = settled.join(f.broadcast(bounds), list(READER)).selectExpr(
        *READER,
        "event",
        *(
            f"greatest(least(stop, highest) - greatest(first, reached, {low}), 0) AS {name}"
            for name, low in _FROM.items()
        ),
    )
    sums = [f.sum(f.when(f.expr(f"event = '{name}'"), f.col("settled"))).alias(name) for name in _ENDS]
    counted = once.groupBy(*READER).agg(*sums, *(f.sum(name).alias(name) for name in _FROM))
    return (
        known.join(counted, list(READER), "left")
        .selectExpr(
            *READER,
            "stop - first AS published",
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
