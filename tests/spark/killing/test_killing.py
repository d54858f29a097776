"""Kill the driver, an executor or the node at every step of a write: each row is in the topic once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import add

import pytest

from sealane.testing.node_process import NodeProcess
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


def test_a_batch_that_is_killed_is_all_or_nothing_and_under_a_transaction_there_once(story: Story) -> None:
    assert story.killed_at("batch", Step.BEFORE_PUBLISHING).batch == NOTHING
    assert story.killed_at("batch", Step.AFTER_PUBLISHING).batch == BATCH_EXPECTED
    assert story.lived(story.start("batch")).batch == BATCH_EXPECTED


def test_a_stream_that_is_killed_at_every_step_reads_and_writes_each_row_once(story: Story) -> None:
    """The driver is killed a step further on in each of its lives; in the last one executors and the node are."""
    for step in (*WRITING, Step.BEFORE_PUBLISHING):
        assert story.killed_at("stream", step).stream == NOTHING, step
    assert story.killed_at("stream", Step.AFTER_PUBLISHING).stream == FIRST
    # Whatever came after it: the first is there once.
    later = story.killed_at("stream", Step.AFTER_THE_COMMIT_LOG).stream
    assert {payload: later[payload] for payload in FIRST} == FIRST

    for step in WRITING:
        story.plan.add("stream", Deed.KILL_EXECUTOR, step)
    story.plan.add("stream", Deed.HOLD, Step.BEFORE_PUBLISHING)
    job = story.start("stream")
    try:
        story.plan.wait_until_held()
        story.node.kill()
        story.node.start()
        story.plan.let_go()
    finally:
        seen = story.lived(job)
    assert seen.stream == ALL
    assert not story.plan.left(), "something that was to happen did not"
