"""Kill the driver, an executor or the node at every step of a write: each row is in the topic once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import add

import pytest

from sealane.testing.node_process import NodeProcess
from tests.spark.killing.plan import WRITING, Deed, Step
from tests.spark.killing.story import BATCH_EXPECTED, STREAM_EXPECTED, Seen, Story

pytestmark = pytest.mark.slow

NOTHING: Counter[bytes] = Counter()
FIRST = STREAM_EXPECTED[0]
ALL = reduce(add, STREAM_EXPECTED)


@pytest.fixture(scope="module")
def story(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("killing")
    with NodeProcess(directory / "node") as node:
        yield Story(directory, node)


@pytest.fixture(scope="module")
def seen(story: Story) -> dict[tuple[str, Step] | str, Seen]:
    """What was to be seen after each life: the job is killed a step further on in each, and then comes to its end."""
    after: dict[tuple[str, Step] | str, Seen] = {}
    for kind, step in [
        ("batch", Step.BEFORE_PUBLISHING),
        ("batch", Step.AFTER_PUBLISHING),
        *(("stream", step) for step in Step),
    ]:
        after[kind, step] = story.killed_at(kind, step)
    for step in WRITING:
        story.plan.add("stream", Deed.KILL_EXECUTOR, step)
    story.plan.add("stream", Deed.HOLD, Step.BEFORE_PUBLISHING)
    job = story.start("batch", "stream")
    try:
        story.plan.wait_until_held()
        story.node.kill()
        story.node.start()
        story.plan.let_go()
    finally:
        after["the end"] = story.lived(job)
    return after


def test_a_batch_that_is_killed_before_its_commit_leaves_nothing(seen: dict[tuple[str, Step] | str, Seen]) -> None:
    assert seen["batch", Step.BEFORE_PUBLISHING].batch == NOTHING


def test_a_batch_under_a_transaction_is_there_once_however_often_it_is_run(
    seen: dict[tuple[str, Step] | str, Seen],
) -> None:
    assert seen["batch", Step.AFTER_PUBLISHING].batch == BATCH_EXPECTED
    assert seen["the end"].batch == BATCH_EXPECTED


@pytest.mark.parametrize("step", [*WRITING, Step.BEFORE_PUBLISHING])
def test_a_stream_that_is_killed_before_its_commit_leaves_nothing(
    seen: dict[tuple[str, Step] | str, Seen], step: Step
) -> None:
    assert seen["stream", step].stream == NOTHING


def test_a_micro_batch_that_was_published_is_not_published_again(seen: dict[tuple[str, Step] | str, Seen]) -> None:
    assert seen["stream", Step.AFTER_PUBLISHING].stream == FIRST
    # Whatever came after it: the first is there once.
    later = seen["stream", Step.AFTER_THE_COMMIT_LOG].stream
    assert {payload: later[payload] for payload in FIRST} == FIRST


def test_after_all_kills_of_driver_executors_and_node_each_row_is_there_once(
    story: Story, seen: dict[tuple[str, Step] | str, Seen]
) -> None:
    assert seen["the end"].stream == ALL
    assert not story.plan.left(), "something that was to happen did not"
