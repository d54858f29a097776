"""Where the pipeline can be killed: a step, of a table, of a compaction, or of a query."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from sealane.pipeline.lake.compacting import WRITER as COMPACTION
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, DELIVERIES, QUARANTINE, RAW_HISTORY, RAW_MESSAGES, Table

APPENDED = (RAW_MESSAGES, CLEAN_MESSAGES, QUARANTINE, RAW_HISTORY, DELIVERIES)
COMPACTED = (RAW_MESSAGES, RAW_HISTORY, DELIVERIES)
QUERIES = ("messages", "history")


class Moment(StrEnum):
    """In the order in which a micro-batch comes by."""

    BEFORE_STAGING = "before-staging"
    AFTER_STAGING = "after-staging"
    AFTER_A_SYNC = "after-a-sync"
    BEFORE_THE_RECORD = "before-the-record"
    AFTER_THE_RECORD = "after-the-record"
    BETWEEN_MOVES = "between-moves"
    BETWEEN_REMOVALS = "between-removals"
    AFTER_THE_MOVES = "after-the-moves"
    BEFORE_SPARKS_COMMIT = "before-sparks-commit"
    AFTER_SPARKS_COMMIT = "after-sparks-commit"
    BEFORE_ITS_STATE = "before-its-state"
    AFTER_ITS_STATE = "after-its-state"
    WITHIN_A_TASK = "within-a-task"


APPENDING = (
    Moment.BEFORE_STAGING,
    Moment.AFTER_STAGING,
    Moment.AFTER_A_SYNC,
    Moment.BEFORE_THE_RECORD,
    Moment.AFTER_THE_RECORD,
    Moment.BETWEEN_MOVES,
    Moment.AFTER_THE_MOVES,
)
COMPACTING = (
    Moment.BEFORE_THE_RECORD,
    Moment.AFTER_THE_RECORD,
    Moment.BETWEEN_MOVES,
    Moment.BETWEEN_REMOVALS,
    Moment.AFTER_THE_MOVES,
)
QUERYING = (
    Moment.BEFORE_ITS_STATE,
    Moment.AFTER_ITS_STATE,
    Moment.BEFORE_SPARKS_COMMIT,
    Moment.AFTER_SPARKS_COMMIT,
)
"""Its state are the ids that messages are compared with, or the deliveries that are open."""


class Point(NamedTuple):
    kind: str
    moment: Moment

    def __str__(self) -> str:
        return f"{self.kind} {self.moment}"


def kind_of(table: Table, writer: str) -> str:
    """What plans call the commits of a table; those of a compaction are others."""
    name = table.full_name.replace("/", "-")
    return f"compacted-{name}" if writer == COMPACTION else name


def every_point() -> list[Point]:
    """All there are, as one cycle comes by them."""
    appended = [Point(kind_of(table, ""), moment) for table in APPENDED for moment in APPENDING]
    queries = [Point(query, moment) for query in QUERIES for moment in QUERYING]
    compacted = [Point(kind_of(table, COMPACTION), moment) for table in COMPACTED for moment in COMPACTING]
    return [*appended, *queries, *compacted]


def part_of(points: Sequence[Point], part: int, parts: int) -> list[Point]:
    """One of so many parts, counted from 1; together they are all points, each once."""
    assert 1 <= part <= parts
    return list(points[part - 1 :: parts])


def some_points(seed: int, count: int) -> list[Point]:
    """A choice with no kind more often than it must be: a table that is only ever killed at its first step proves
    little. A compaction is always among them, since it takes files away.
    """
    choose = random.Random(seed)
    points = every_point()
    choose.shuffle(points)
    chosen = [next(point for point in points if point.kind.startswith("compacted"))]
    while len(chosen) < count:
        kinds, moments = [point.kind for point in chosen], [point.moment for point in chosen]
        left = [point for point in points if point not in chosen]
        chosen.append(min(left, key=lambda point: kinds.count(point.kind) + moments.count(point.moment)))
    choose.shuffle(chosen)
    return chosen
