"""What differs between messages: priority, delay, time to live, filters, and whom a batch is for."""

from __future__ import annotations

import pytest

from sealane.delivery.config import Retry
from sealane.delivery.events import Released
from sealane.delivery.limits import DeliveryLimits
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, SmallQueue, bitmap, expired, failed, listed, rows


@pytest.fixture
def queue() -> SmallQueue:
    queue = SmallQueue()
    queue.subscribe()
    return queue


def prioritised(queue: SmallQueue, *priorities: int) -> None:
    queue.publish(rows(*(Row(b"m", priority=priority) for priority in priorities)))


def after(queue: SmallQueue, seconds: float | None) -> int | None:
    return None if seconds is None else queue.now_us + round(seconds * SECOND)


def expiring(queue: SmallQueue, *seconds: float | None) -> None:
    queue.publish(rows(*(Row(b"m", expires_us=after(queue, wait)) for wait in seconds)))


def delayed(queue: SmallQueue, *seconds: float | None) -> None:
    queue.publish(rows(*(Row(b"m", deliver_at_us=after(queue, wait)) for wait in seconds)))


# --- priority ---------------------------------------------------------------------------------------------------------


def test_higher_priority_goes_first_and_ties_go_by_offset(queue: SmallQueue) -> None:
    prioritised(queue, 5, 9, 1, 9, 5)
    assert queue.grant() == [1, 3, 0, 4, 2]


def test_each_priority_is_a_lease_of_its_own_best_first(queue: SmallQueue) -> None:
    prioritised(queue, 1, 10, 5, 10)
    assert [listed(event.offsets) for event in queue.grants("ann", 3)] == [[1, 3], [2]]


def test_priority_holds_among_batches_and_survives_a_failure(queue: SmallQueue) -> None:
    queue.publish(2)
    prioritised(queue, 9)
    assert queue.grant("ann", 1) == [2]
    queue.nack(2, delay_us=0)
    queue.wait(0)
    assert queue.grant("ann") == [2, 0, 1]


def test_a_whole_batch_of_one_priority_is_one_grant(queue: SmallQueue) -> None:
    prioritised(queue, *[8] * 100)
    assert [event.offsets for event in queue.grants("ann")] == [(0, 100)]


def test_priority_is_known_before_a_message_returns_after_a_restart(queue: SmallQueue) -> None:
    prioritised(queue, 9, 1)
    queue.grant()
    queue.nack(0, delay_us=SECOND)
    queue.restart()
    queue.wait(1)
    assert queue.grant() == [0, 1]
    assert queue.grant() == []


def test_a_snapshot_knows_which_batches_a_scan_must_look_into(queue: SmallQueue) -> None:
    queue.publish(2)
    prioritised(queue, 9)
    queue.publish(rows(Row(b"m"), only="audit"))
    queue.snapshot()
    queue.restart()
    assert queue.grant() == [2, 0, 1]


# --- delay ------------------------------------------------------------------------------------------------------------


def test_a_delayed_message_waits_for_its_moment(queue: SmallQueue) -> None:
    delayed(queue, 5, None, 2)
    assert queue.grant() == [1]
    assert queue["billing"].next_tick_us() == queue.now_us + 2 * SECOND
    queue.wait(1.999)
    assert queue.grant() == []
    queue.wait(0.001)
    assert queue.grant() == [2]
    queue.wait(3)
    assert queue.grant() == [0]


def test_a_delay_is_rounded_up_to_the_millisecond_never_down(queue: SmallQueue) -> None:
    delayed(queue, 0.000_001)
    assert queue.grant() == []
    queue.wait(0.000_999)
    assert queue.grant() == []
    queue.wait(0.000_001)
    assert queue.grant() == [0]


def test_a_delay_that_is_over_before_the_scan_is_no_delay(queue: SmallQueue) -> None:
    delayed(queue, 1, 2)
    queue.wait(2)
    assert queue.grant() == [0, 1]


def test_a_delay_survives_a_restart_by_journal_and_by_snapshot(queue: SmallQueue) -> None:
    delayed(queue, 5)
    assert queue.grant() == []
    queue.restart()
    assert queue.grant() == []
    queue.snapshot()
    queue.restart()
    assert queue.grant() == []
    queue.wait(5)
    assert queue.grant() == [0]


# --- time to live -----------------------------------------------------------------------------------------------------


def test_a_message_expires_while_it_is_ready(queue: SmallQueue) -> None:
    expiring(queue, 1, None, 2)
    queue.grant(count=0)
    assert expired(queue.wait(1)) == [0]
    assert queue.grant("ann", 1) == [1]
    assert expired(queue.wait(1)) == [2]
    assert queue["billing"].depth(3) == 1


def test_a_message_that_expired_before_the_scan_is_never_granted(queue: SmallQueue) -> None:
    expiring(queue, 1, None)
    queue.wait(1)
    assert queue.grant() == [1]
    assert expired(queue.events) == [0]


def test_a_message_expires_while_it_waits_for_a_retry(queue: SmallQueue) -> None:
    expiring(queue, 3)
    queue.grant()
    queue.nack(0, delay_us=60 * SECOND)
    assert expired(queue.wait(3)) == [0]
    queue.wait(60)
    assert queue.grant() == []


def test_a_delayed_message_can_expire_before_its_moment(queue: SmallQueue) -> None:
    queue.publish(rows(Row(b"m", deliver_at_us=queue.now_us + 9 * SECOND, expires_us=queue.now_us + SECOND)))
    queue.grant()
    assert expired(queue.wait(1)) == [0]
    queue.wait(9)
    assert queue.grant() == []


def test_a_message_that_expires_under_a_lease_can_still_be_acked(queue: SmallQueue) -> None:
    expiring(queue, 1)
    queue.grant()
    assert queue.wait(1) == []
    queue.ack(0)
    assert queue["billing"].settled.floor == 1
    assert not queue["billing"].stale


def test_a_message_that_expired_under_a_lease_is_not_tried_again(queue: SmallQueue) -> None:
    expiring(queue, 1, None)
    queue.grant()
    queue.wait(1)
    events = queue.nack(0, 1, delay_us=0)
    assert (expired(events), failed(events)) == ([0], [1])
    queue.wait(0)
    assert queue.grant() == [1]


def test_a_message_that_expired_under_a_lease_is_not_granted_again_after_a_release(queue: SmallQueue) -> None:
    expiring(queue, 1, None)
    queue.grant()
    queue.wait(1)
    queue.release(0, 1)
    assert isinstance(queue.events[-1], Released)
    assert queue.grant("bob") == [1]
    assert expired(queue.wait(0)) == [0]
    assert queue["billing"].settled.floor == 1


def test_an_unbound_lease_keeps_its_expired_message_through_a_restart(queue: SmallQueue) -> None:
    expiring(queue, 1)
    queue.grant(bound=False)
    queue.wait(1)
    queue.restart()
    assert queue.grant("bob") == []
    queue.ack(0)
    assert expired(queue.events) == []


def test_a_message_that_expired_under_an_unbound_lease_is_not_tried_again_after_a_restart(queue: SmallQueue) -> None:
    expiring(queue, 1)
    queue.grant(bound=False)
    queue.wait(1)
    queue.restart()
    assert queue.grant("bob") == []
    events = queue.nack(0)
    assert (expired(events), failed(events)) == ([0], [])


def test_expiry_is_known_before_a_message_returns_after_a_restart(queue: SmallQueue) -> None:
    expiring(queue, 2)
    queue.grant()
    queue.nack(0, delay_us=SECOND)
    queue.restart()
    queue.wait(2)
    assert queue.grant() == []
    assert expired(queue.events) == [0]


def test_a_dying_message_can_expire() -> None:
    queue = SmallQueue()
    queue.subscribe(retry=Retry(attempts_max=1))
    expiring(queue, 1)
    queue.grant()
    queue.nack(0)
    assert expired(queue.wait(1)) == [0]
    assert not queue["billing"].dying


def test_a_batch_whose_every_message_has_its_own_expiry_is_scanned_once(queue: SmallQueue) -> None:
    expiring(queue, *(second / 100 for second in range(100, 0, -1)), None)
    queue.grant(count=0)
    assert expired(queue.wait(0.5)) == list(range(50, 100))
    assert expired(queue.wait(0.5)) == list(range(50))


def test_moments_of_settled_messages_are_not_kept(queue: SmallQueue) -> None:
    """One message at the front must not make the set of moments grow with all that pass behind it."""
    expiring(queue, 3_600)
    queue.grant("slow", 1)
    for turn in range(500):
        expiring(queue, 3_601 + turn)
        queue.grant("ann")
        queue.ack(1 + turn)
    expiry = queue["billing"].expiry
    assert len(expiry._buckets) < 200
    assert len(expiry._heap) == len(expiry._buckets)
    assert len(expiry._stale) < 200


# --- filters ----------------------------------------------------------------------------------------------------------


def test_a_filter_settles_what_it_rejects_without_an_event() -> None:
    queue = SmallQueue()
    queue.subscribe(filter="priority >= 7")
    prioritised(queue, 9, 1, 7, 5)
    recorded = len(queue.events)
    assert queue.grant() == [0, 2]
    assert len(queue.events) == recorded + 2
    assert queue["billing"].depth(4) == 2
    queue.ack(0, 2)
    assert queue["billing"].settled.floor == 4


def test_after_a_restart_the_filter_rejects_the_same_again() -> None:
    queue = SmallQueue()
    queue.subscribe(filter="key = 'a'")
    queue.publish(rows(Row(b"m", key=b"b"), Row(b"m", key=b"a"), Row(b"m")))
    assert queue.grant() == [1]
    queue.ack(1)
    queue.restart()
    assert queue["billing"].settled.floor == 0
    assert queue.grant() == []
    assert queue["billing"].settled.floor == 3


def test_a_filter_and_key_order_work_together() -> None:
    queue = SmallQueue()
    queue.subscribe(mode="key-shared", filter="priority > 3")
    queue.publish(rows(*(Row(b"m", key=b"a", priority=priority) for priority in (1, 5, 2, 9))))
    assert queue.grant("ann", 1) == [1]
    assert queue.grant("bob") == []
    assert queue.grant("ann") == [3]


# --- addressed batches ------------------------------------------------------------------------------------------------


def test_an_addressed_batch_is_for_its_subscription_only(queue: SmallQueue) -> None:
    queue.subscribe("audit")
    queue.publish(1)
    queue.publish(rows(Row(b"m"), Row(b"m"), only="audit"))
    queue.publish(1)
    assert queue.grant() == [0, 3]
    assert queue.grant(name="audit") == [0, 1, 2, 3]
    queue.ack(0, 3)
    assert queue["billing"].settled.floor == 4


def test_a_scan_that_needs_data_stops_before_a_batch_for_someone_else() -> None:
    """The log may have joined batches: one that was addressed lies in the middle of a stored one."""
    queue = SmallQueue()
    queue.subscribe(filter="priority >= 1")
    for only in (None, "audit", None):
        queue.publish(rows(Row(b"m"), Row(b"m"), only=only))
    queue.log = [(0, rows(*[Row(b"m")] * 6))]
    assert queue.grant() == [0, 1, 4, 5]


def test_an_addressed_batch_does_not_count_against_the_limit_of_others() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=2))
    queue.subscribe()
    queue.publish(2)
    queue.subscribe("audit", floor=2)
    queue.publish(rows(Row(b"m"), Row(b"m"), only="audit"))
    assert queue.grant(name="audit") == [2, 3]


# --- lost and trimmed -------------------------------------------------------------------------------------------------


def test_lost_messages_are_passed_over_wherever_they_were(queue: SmallQueue) -> None:
    queue.subscribe("new")
    queue.publish(6)
    queue.grant("ann", 2)
    queue.nack(0, delay_us=60 * SECOND)
    queue.record(queue.partition.lose(0, 4, queue.now_us))
    queue.check()
    assert queue.grant() == [4, 5]
    assert queue.grant(name="new") == [4, 5]
    queue.wait(60)
    assert queue["billing"].settled.floor == 4


def test_lost_messages_stay_lost_for_new_subscriptions_and_after_a_seek(queue: SmallQueue) -> None:
    queue.publish(4)
    queue.record(queue.partition.lose(1, 3, queue.now_us))
    queue.subscribe("late")
    assert queue.grant(name="late") == [0, 3]
    queue.seek(0)
    assert queue.grant() == [0, 3]
    queue.seek(0)
    queue.restart()
    assert queue.grant() == [0, 3]


def test_trimming_forgets_what_described_older_messages(queue: SmallQueue) -> None:
    prioritised(queue, 9, 9)
    queue.publish(rows(Row(b"m"), only="nobody"))
    queue.record(queue.partition.lose(0, 1, queue.now_us))
    queue.publish(1)
    queue.grant()
    queue.ack(1, 3)
    partition = queue.partition
    assert partition.settled_floor() == 4
    partition.trimmed(4)
    assert (partition.start, partition.addressed, partition.lost) == (4, [], [])
    assert not partition.unplain
    assert partition.priorities.split(bitmap(0, 1))[0][0] == 5


def test_the_settled_floor_is_that_of_the_slowest_reader(queue: SmallQueue) -> None:
    queue.publish(4)
    queue.subscribe("slow", floor=1)
    queue.partition.join("member", queue["billing"].config, 3)
    queue.grant()
    queue.ack(0, 1, 2, 3)
    assert queue.partition.settled_floor() == 1


def test_without_readers_everything_is_settled() -> None:
    queue = SmallQueue()
    queue.publish(3)
    assert queue.partition.settled_floor() == 3


def test_a_reader_that_trimming_overtakes_holds_nothing_that_is_gone(queue: SmallQueue) -> None:
    queue.publish(4)
    queue.grant("ann", 2)
    queue.partition.trimmed(3)
    queue.check()
    assert queue.grant() == [3]


def test_members_read_for_themselves_and_leave_nothing(queue: SmallQueue) -> None:
    queue.publish(2)
    member = queue.partition.join("news@ann", queue["billing"].config, 1)
    queue.scan(member)
    assert [listed(event.offsets) for event in member.grant("ann", 9, lease_from=7, now_us=queue.now_us)] == [[1]]
    assert "news@ann" not in queue.folded().subscriptions
