"""What was published just now, scanned and granted in one step: the same as in two, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sealane.delivery.events import Granted
from sealane.message import Row
from tests.unit.delivery.small_queue import SmallQueue, bitmap, rows


def fresh(queue: SmallQueue, consumer: str = "ann") -> Granted | None:
    """As the node does it: only where nothing has to be looked into."""
    subscription = queue["billing"]
    start, stop = subscription.scanned, queue.partition.visible
    assert start < stop
    if not queue.partition.is_plain_from(start):
        return None
    return subscription.grant_fresh(consumer, stop, lease=77, now_us=queue.now_us)


def test_it_is_what_a_scan_and_a_grant_come_to() -> None:
    one, other = SmallQueue(), SmallQueue()
    for queue in (one, other):
        queue.subscribe()
        queue.publish(3)
        assert queue.grant("bob", 3) == [0, 1, 2]
        queue.ack(0, 2)
        queue.publish(4)
    granted = fresh(one)
    (expected,) = other.grants("ann", 4)
    assert granted is not None
    assert granted.offsets == expected.offsets == (3, 7)
    assert granted.deadline_us == expected.deadline_us
    assert one["billing"].scanned == other["billing"].scanned == 7
    one.check()
    assert one.grant("ann") == other.grant("ann") == []
    one["billing"].ack(77, bitmap(3), one.now_us)
    one.check()


def _ready(queue: SmallQueue) -> None:
    queue.publish(2)
    assert queue.grant("bob", 1) == [0]


def _given_back(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant("bob")
    queue["billing"].release(queue.lease_of(0), None)


def _failed(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant("bob")
    queue["billing"].fail(queue.lease_of(0), None, queue.now_us, cause="nack")


def _urgent(queue: SmallQueue) -> None:
    queue.publish(rows(Row(b"now", priority=9)))


def _for_another(queue: SmallQueue) -> None:
    queue.subscribe("audit")
    queue.publish(rows(Row(b"m"), only="audit"))


def _settled_ahead(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.partition.lose(1, 2, queue.now_us)


def _behind_its_floor(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.partition.lose(0, 1, queue.now_us)


@pytest.mark.parametrize(
    "before", [_ready, _given_back, _failed, _urgent, _for_another, _settled_ahead, _behind_its_floor]
)
def test_where_there_is_something_else_to_see_to_nothing_happens(before: Callable[[SmallQueue], None]) -> None:
    queue = SmallQueue()
    queue.subscribe()
    before(queue)
    queue.publish(1)
    scanned = queue["billing"].scanned
    assert fresh(queue) is None
    assert queue["billing"].scanned == scanned
    assert 77 not in queue["billing"].leases.by_id
    assert queue.partition.end - 1 in queue.grant("ann")


@pytest.mark.parametrize("config", [{"mode": "key-shared"}, {"filter": "priority = 5"}])
def test_who_looks_into_messages_is_granted_none_unseen(config: dict[str, Any]) -> None:
    queue = SmallQueue()
    queue.subscribe(**config)
    queue.publish(1)
    assert fresh(queue) is None


def test_a_lease_that_outlived_a_restart_keeps_its_messages() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(3)
    assert queue.grant("bob", 2, bound=False) == [0, 1]
    queue.restart()
    assert fresh(queue) is None
    assert queue.grant("ann") == [2]
