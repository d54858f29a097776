"""The proof that what was published was delivered once, in order; or the messages that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sealane.pipeline.facts.events import runs_of
from sealane.pipeline.facts.reconciliation import Reconciliation, reconcile
from sealane.spark.source.spark_types import history_columns, message_columns
from tests.spark.pipeline.told import START, Told, framed, message_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Named = tuple[str, int, str | None]
"""A problem: which, of which offset, for which subscription."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a topic's journal tells of its messages, and what comes of it."""

    told: Told
    count: int
    problems: list[Named] = field(default_factory=list)
    balance: dict[str, int] = field(default_factory=dict)
    spoil: Callable[[list[Row]], None] = lambda rows: None
    """Changes the messages themselves."""


def told_of(count: int) -> Told:
    """Messages that were granted and acknowledged in tens, and a snapshot that says so."""
    told = Told()
    told.tell("subscribed", (0, 0))
    for first in range(0, count, 10):
        told.tell("granted", (first, first + 10), lease=first, consumer="anna")
        told.tell("acked", (first, first + 10), lease=first)
    told.tell("standing", (0, count))
    return told


def never_settled() -> Told:
    told = told_of(50)
    acked = next(row for row in told.rows if row["event"] == "acked" and row["runs"][0]["first"] == 20)
    acked["runs"] = [{"first": 20, "stop": 25}, {"first": 26, "stop": 30}]
    return told


def under_way() -> Told:
    told = told_of(50)
    del told.rows[-2:]
    return told


def settled_twice() -> Told:
    told = told_of(50)
    told.tell("acked", (33, 34), lease=99)
    return told


def handed_out(*runs: tuple[int, int]) -> Told:
    told = Told()
    told.tell("subscribed", (0, 0))
    for run in runs:
        told.tell("granted", run, lease=run[0], consumer="anna")
    return told


def handed_out_again() -> Told:
    told = handed_out((0, 10))
    told.tell("failed", (4, 5), lease=0, cause="nack")
    told.tell("granted", (4, 5), lease=2, consumer="anna")
    return told


def for_another() -> Told:
    told = told_of(50)
    told.tell("addressed", (50, 52), subscription="audit")
    told.tell("standing", (0, 52))
    return told


def passed_over(event: str) -> Told:
    told = Told()
    told.tell("subscribed", (0, 0))
    told.tell(event, (0, 30))
    told.tell("standing", (0, 30))
    return told


def with_a_filter() -> Told:
    """It has behind it what it never had to settle, and what it says of its filter is not its last word."""
    told = Told()
    told.tell("subscribed", (0, 0), mode="shared", filter="key = 'x'")
    told.tell("granted", (3, 4), lease=1, consumer="anna")
    told.tell("acked", (3, 4), lease=1)
    told.tell("standing", (0, 50))
    return told


def set_back() -> Told:
    told = told_of(50)
    told.tell("sought", (0, 20))
    told.tell("granted", (20, 50), lease=70, consumer="anna")
    told.tell("acked", (20, 50), lease=70)
    told.tell("acked", (44, 45), lease=70)
    return told


def made_again_at_the_end() -> Told:
    told = Told()
    told.tell("subscribed", (0, 0))
    told.tell("granted", (0, 10), lease=1, consumer="anna")
    told.tell("acked", (0, 10), lease=1)
    told.tell("unsubscribed")
    told.tell("subscribed", (0, 40))
    told.tell("granted", (40, 50), lease=1, consumer="anna")
    told.tell("acked", (40, 50), lease=1)
    told.tell("standing", (0, 50))
    return told


def give_an_id_twice(rows: list[Row]) -> None:
    rows[7]["id"] = rows[3]["id"]


def lose_one(rows: list[Row]) -> None:
    del rows[12]


def lose(*offsets: int) -> Callable[[list[Row]], None]:
    def spoil(rows: list[Row]) -> None:
        rows[:] = [row for row in rows if row["offset"] not in offsets]

    return spoil


CASES = {
    "delivered once and in order": Case(told_of(50), 50, [], {"published": 50, "acked": 50, "in_flight": 0}),
    "never settled, and the subscription is past it": Case(
        never_settled(), 50, [("missing", 25, "billing")], {"acked": 49, "in_flight": 0, "missing": 1}
    ),
    "under way": Case(under_way(), 50, [], {"acked": 40, "in_flight": 10}),
    "settled twice": Case(settled_twice(), 50, [("duplicated", 33, "billing")], {"acked": 50}),
    "two messages of one id": Case(
        told_of(50), 50, [("duplicated", 3, None), ("duplicated", 7, None)], spoil=give_an_id_twice
    ),
    "a hole in the log": Case(told_of(50), 50, [("missing", 12, None)], spoil=lose_one),
    "holes in the log, wherever they are": Case(
        told_of(200),
        200,
        [("missing", offset, None) for offset in (1, 63, 64, 65, 100, 127, 128, 198)],
        spoil=lose(1, 63, 64, 65, 100, 127, 128, 198),
    ),
    "lost from the log before it was settled": Case(
        never_settled(), 50, [("missing", 25, None)], {"acked": 49, "missing": 1}, spoil=lose(25)
    ),
    "first handed out after a later one": Case(
        handed_out((0, 4), (5, 10), (4, 5)), 10, [("out of order", 4, "billing")]
    ),
    "history is ahead of the messages": Case(told_of(60), 50, [], {"published": 50, "acked": 50, "in_flight": 0}),
    "a filter passes over some": Case(with_a_filter(), 50, [], {"acked": 1, "passed_over": 49}),
    "set back, and one of those settled twice": Case(set_back(), 50, [("duplicated", 44, "billing")], {"acked": 50}),
    "made again at the end": Case(made_again_at_the_end(), 50, [], {"acked": 20, "passed_over": 30}),
    "handed out again": Case(handed_out_again(), 10),
    "addressed to another subscription": Case(for_another(), 52, [], {"acked": 50, "passed_over": 2}),
    "passed over by an expiry": Case(passed_over("advanced"), 50, [], {"passed_over": 30, "in_flight": 20}),
    "passed over by a seek": Case(passed_over("sought"), 50, [], {"passed_over": 30, "in_flight": 20}),
}


@dataclass(frozen=True, slots=True)
class Found:
    problems: dict[str, list[Any]]
    balance: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Iterator[Found]:
    """All cases at once, each as a topic of its own: none must see anything of another."""
    stored: list[Row] = []
    told: list[Row] = []
    for name, case in CASES.items():
        rows = message_rows(case.count)
        case.spoil(rows)
        stored += [row | {"topic": name} for row in rows]
        told += [row | {"topic": name} for row in case.told.rows]
    messages = framed(spark, stored, message_columns()).persist()
    history = framed(spark, told, history_columns()).persist()
    proof = reconcile(messages, runs_of(history))
    problems: dict[str, list[Any]] = {name: [] for name in CASES}
    for row in proof.problems.collect():
        problems[row.topic].append(row)
    balance = {row.topic: row.asDict() for row in proof.balance.where("subscription = 'billing'").collect()}
    proof.release()
    yield Found(problems, balance)
    messages.unpersist()
    history.unpersist()


@pytest.mark.parametrize("name", CASES)
def test_a_message_that_breaks_the_balance_is_named_and_no_other(found: Found, name: str) -> None:
    rows = found.problems[name]
    assert sorted((row.problem, row.offset, row.subscription) for row in rows) == CASES[name].problems


@pytest.mark.parametrize("name", CASES)
def test_the_balance_says_what_became_of_all(found: Found, name: str) -> None:
    balance = found.balance[name]
    assert {key: balance[key] for key in CASES[name].balance} == CASES[name].balance
    ends = ("acked", "dead_lettered", "expired", "dropped", "passed_over", "in_flight", "missing")
    assert balance["published"] == sum(balance[key] for key in ends)
    assert min(balance[key] for key in ends) >= 0


def test_a_problem_has_the_messages_id(found: Found) -> None:
    (row,) = found.problems["never settled, and the subscription is past it"]
    assert bytes(row.id) == row.offset.to_bytes(16, "big")


def test_a_window_names_what_is_in_it_and_two_that_meet_name_all(spark: SparkSession) -> None:
    rows = message_rows(100)
    for row in rows:
        row["created"] = START + timedelta(seconds=row["offset"])
    rows[71]["id"] = rows[11]["id"]
    lose(20, 60)(rows)
    told = told_of(100)
    for row in told.rows:
        if row["event"] == "acked" and row["runs"][0]["first"] in (30, 80):
            row["runs"][0]["first"] += 1
    told.tell("acked", (33, 34), (83, 84), lease=999)
    messages = framed(spark, rows, message_columns()).persist()
    runs = runs_of(framed(spark, told.rows, history_columns())).persist()
    # The message after the hole at 60 is the first one of the later window, so that the hole is in that one.
    middle = START + timedelta(seconds=60)
    earlier, later = reconcile(messages, runs, until=middle), reconcile(messages, runs, since=middle)
    assert _named(earlier) == [
        ("duplicated", 11, None),
        ("duplicated", 33, "billing"),
        ("missing", 20, None),
        ("missing", 30, "billing"),
    ]
    assert _named(later) == [
        ("duplicated", 71, None),
        ("duplicated", 83, "billing"),
        ("missing", 60, None),
        ("missing", 80, "billing"),
    ]
    (of_earlier,), (of_later,) = earlier.balance.collect(), later.balance.collect()
    assert (of_earlier.published, of_earlier.acked, of_earlier.missing) == (60, 59, 1)
    assert (of_later.published, of_later.acked, of_later.missing) == (39, 38, 1)
    for each in (earlier, later, messages, runs):
        each.release() if isinstance(each, Reconciliation) else each.unpersist()


def _named(found: Reconciliation) -> list[Named]:
    return sorted((row.problem, row.offset, row.subscription) for row in found.problems.collect())
