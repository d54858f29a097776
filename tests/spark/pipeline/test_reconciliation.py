"""The proof that what was published was delivered once, in order; or the messages that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sealane.pipeline.facts.events import runs_of
from sealane.pipeline.facts.reconciliation import reconcile
from sealane.spark.source.spark_types import history_columns, message_columns
from tests.spark.pipeline.told import Told, framed, message_rows

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


def give_an_id_twice(rows: list[Row]) -> None:
    rows[7]["id"] = rows[3]["id"]


def lose_one(rows: list[Row]) -> None:
    del rows[12]


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
    "first handed out after a later one": Case(
        handed_out((0, 4), (5, 10), (4, 5)), 10, [("out of order", 4, "billing")]
    ),
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
