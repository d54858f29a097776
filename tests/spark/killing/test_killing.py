"""Kill the driver, an executor or the node at every step of a write: each row is in the topic once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import add

import pytest

from sealane.testing.node_process import NodeProcess
from tests.spark.killing.job import BATCHES, STREAMS
from tests.spark.killing.lives import LIFE_SECONDS_MAX
from tests.spark.killing.plan import WRITING, Deed, Step
from tests.spark.killing.story import BATCH_EXPECTED, STREAM_EXPECTED, Story

pytestmark = pytest.mark.slow

NOTHING: Counter[bytes] = Counter()
FIRST = STREAM_EXPECTED[0]
ALL = reduce(add, STREAM_EXPECTED)


@pytest.fixture
def story(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("killing")
    with NodeProcess(directory / "node") as node:
        yield Story(directory, node)


def test_whatever_is_killed_at_any_step_each_row_is_read_and_written_once(story: Story) -> None:
    """Each write has come to another step when the driver is killed; a second time, to yet another one; in the third
    life executors are killed, and the node.
    """
    steps = dict(zip(STREAMS, Step, strict=True))
    unpublished = [topic for topic, step in steps.items() if step in (*WRITING, Step.BEFORE_PUBLISHING)]
    before, after = BATCHES
    seen = story.killed_at({**steps, before: Step.BEFORE_PUBLISHING, after: Step.AFTER_PUBLISHING})
    assert {topic: seen[topic] for topic in unpublished} == dict.fromkeys(unpublished, NOTHING)
    for topic in set(STREAMS) - set(unpublished):
        # Whatever came after it, the first micro-batch is there, and nothing twice.
        assert FIRST <= seen[topic] <= ALL
    assert seen[before] == NOTHING
    assert seen[after] == BATCH_EXPECTED

    others = dict(zip(unpublished, (steps[topic] for topic in reversed(unpublished)), strict=True))
    seen = story.killed_at(others)
    assert {topic: seen[topic] for topic in unpublished} == dict.fromkeys(unpublished, NOTHING)

    plan = story.next_plan()
    of_executors, of_the_node = unpublished[:2]
    for step in WRITING:
        plan.add(of_executors, Deed.KILL_EXECUTOR, step)
    plan.add(of_the_node, Deed.HOLD, Step.BEFORE_PUBLISHING)
    with story.life(plan) as job:
        plan.wait_until_held([of_the_node], job)
        story.node.kill()
        story.node.start()
        plan.let_go()
        assert job.wait(LIFE_SECONDS_MAX) == 0
    assert not plan.left(), "something that was to happen did not"
    assert story.seen() == dict.fromkeys(STREAMS, ALL) | dict.fromkeys(BATCHES, BATCH_EXPECTED)
