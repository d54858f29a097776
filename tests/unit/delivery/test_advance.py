"""Advanced: everything below is settled, wherever it was, and the rest stays where it is."""

from __future__ import annotations

import pytest

from sealane.delivery.config import Mode, Retry
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, SmallQueue, listed, rows


def busy(mode: Mode = "queue") -> SmallQueue:
    """0 and 1 are dying, 2 and 3 wait for a retry, 7 is acked, the rest is leased."""
    queue = SmallQueue()
    queue.subscribe(mode=mode, retry=Retry(kind="fixed", delay_seconds=50, attempts_max=2))
    queue.publish(rows(*(Row(b"m", key=b"%d" % number) for number in range(10))))
    queue.grant("ann", 2)
    queue.nack(0, 1, delay_us=0)
    queue.wait()
    queue.grant("ann")
    for number in (0, 1):
        queue.nack(number)
    for number in (2, 3):
        queue.nack(number, delay_us=100 * SECOND)
    queue.ack(7)
    return queue


@pytest.mark.parametrize("mode", ["queue", "key-shared"])
@pytest.mark.parametrize("offset", range(11))
def test_what_is_below_is_nowhere_any_more_and_the_rest_is_where_it_was(mode: Mode, offset: int) -> None:
    queue = busy(mode)
    subscription = queue["billing"]
    queue.advance(offset)
    assert listed(subscription.dying.members) == [at for at in (0, 1) if at >= offset]
    assert listed(subscription.parked.members) == [at for at in (2, 3) if at >= offset]
    assert listed(subscription.leases.outstanding) == [at for at in (4, 5, 6, 8, 9) if at >= offset]
    assert subscription.depth(10) == len([at for at in range(10) if at >= offset and at != 7])


def test_it_goes_over_what_is_settled_right_above_and_never_back() -> None:
    queue = busy()
    queue.advance(7)
    assert queue["billing"].settled.floor == 8
    queue.advance(3)
    assert queue["billing"].settled.floor == 8


def test_messages_that_no_scan_has_reached_are_passed() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(5)
    queue.advance(3)
    assert queue.grant("ann") == [3, 4]


def test_a_fold_and_a_snapshot_know_of_it() -> None:
    queue = busy()
    queue.advance(5)
    for _ in range(2):
        queue.restart()
        assert queue["billing"].settled.floor == 5
        assert queue.grant("ann") == [5, 6, 8, 9]
        queue.snapshot()
