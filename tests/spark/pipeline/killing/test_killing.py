"""Kill the pipeline at the steps of its commits: the tables are those of an oracle that has never heard of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealane.testing.node_process import NodeProcess
from tests.spark.pipeline.killing.load import Load
from tests.spark.pipeline.killing.oracle import expect_all_once, expect_nothing_twice
from tests.spark.pipeline.killing.points import Moment, Point, every_point, part_of, some_points
from tests.spark.pipeline.killing.story import Story

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEALANE_KILL_SEED", "0"))
TAKES_ALL = os.environ.get("SEALANE_KILL_ALL") == "1"
PART, PARTS = map(int, os.environ.get("SEALANE_KILL_PART", "1/1").split("/"))
"""Of all points, for who has not the time for all of them at once: `2/6` is the second of six parts."""
POINTS = part_of(every_point(), PART, PARTS) if TAKES_ALL else some_points(SEED, 3)
"""A start of Spark takes seconds: some of the points, by a seed, unless all are asked for."""
PARTITIONS_ADDED = {2: ("payments", 3), 4: ("orders", 3), 5: ("payments", 5)}
"""While the job is down, after so many lives."""
LATER = (
    Point("messages", Moment.BEFORE_SPARKS_COMMIT),
    Point("messages", Moment.AFTER_SPARKS_COMMIT),
    Point("history", Moment.BEFORE_ITS_STATE),
    Point("history", Moment.BEFORE_SPARKS_COMMIT),
)
"""Where one is killed whose queries have stayed since an earlier cycle."""
LATER_POINTS = part_of(LATER, PART, PARTS) if TAKES_ALL else [LATER[SEED % len(LATER)]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    with NodeProcess(tmp_path / "node") as node, Load(node.url) as load:
        yield load


@pytest.fixture
def story(java: None, load: Load, tmp_path: Path) -> Story:
    return Story(tmp_path, load.url)


def test_whatever_is_killed_every_message_and_event_is_in_the_tables_once(story: Story, load: Load) -> None:
    """Messages are read before history: in the first life, which is not killed, what is published and settled in
    between is in the one, and was not in the other.
    """
    load.round()
    story.lived_through(Point("messages", Moment.AFTER_SPARKS_COMMIT), load.round)
    expect_nothing_twice(story.lake, load)
    for point in POINTS:
        if story.lives in PARTITIONS_ADDED:
            load.add_partitions(*PARTITIONS_ADDED[story.lives])
        load.round()
        story.killed_at(point)
        if not point.kind.startswith("compacted"):  # Within one a reader may see what is replaced, and by what.
            expect_nothing_twice(story.lake, load)
    for point in LATER_POINTS:
        load.round()
        story.killed_in_a_later_cycle(point, load.round)
        expect_nothing_twice(story.lake, load)
    load.round()
    story.lived(Point("messages", Moment.WITHIN_A_TASK))
    expect_all_once(story.lake, load)
