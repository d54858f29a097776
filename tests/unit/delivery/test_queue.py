"""Queues: grants, leases, acks, failures and their back-off, attempts and death."""

from __future__ import annotations

import msgspec
import pytest

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.delivery.events import Acked, Configured, Extended, Failed
from tests.unit.delivery.small_queue import SECOND, SmallQueue, bitmap, failed, listed, plain


@pytest.fixture
def queue() -> SmallQueue:
    queue = SmallQueue()
    queue.subscribe()
    return queue


# --- grants -----------------------------------------------------------------------------------------------------------


def test_messages_are_granted_in_order_up_to_the_credit(queue: SmallQueue) -> None:
    queue.publish(5)
    assert queue.grant("ann", 2) == [0, 1]
    assert queue.grant("bob", 2) == [2, 3]
    assert queue.grant("ann", 9) == [4]
    assert queue.grant("bob", 9) == []


def test_a_grant_of_a_run_is_one_lease_with_a_deadline(queue: SmallQueue) -> None:
    queue.publish(5_000)
    (event,) = queue.grants("ann", 5_000)
    assert event.offsets == (0, 5_000)
    assert event.deadline_us == queue.now_us + 30 * SECOND
    assert len(queue["billing"].leases.by_id) == 1


def test_a_message_is_not_granted_before_its_commit_is_durable(queue: SmallQueue) -> None:
    publication = queue.partition.publish(plain(1), queue.now_us)
    queue.happen(*publication.events)
    assert queue.grant() == []
    queue.partition.committed(queue.partition.end)
    assert queue.grant() == [0]


def test_a_new_subscription_has_everything_below_its_floor_behind_it(queue: SmallQueue) -> None:
    queue.publish(4)
    queue.subscribe("late", floor=3)
    queue.publish(1)
    assert queue.grant(name="late") == [3, 4]
    assert queue.grant() == [0, 1, 2, 3, 4]


def test_subscriptions_settle_for_themselves(queue: SmallQueue) -> None:
    queue.subscribe("audit")
    queue.publish(2)
    queue.grant()
    queue.ack(0, 1)
    assert queue.grant(name="audit") == [0, 1]


# --- acks -------------------------------------------------------------------------------------------------------------


def test_an_ack_of_one_message_settles_it_alone(queue: SmallQueue) -> None:
    queue.publish(3)
    queue.grant()
    queue.ack(1)
    billing = queue["billing"]
    assert 1 in billing.settled
    assert billing.settled.floor == 0
    assert billing.depth(3) == 2


def test_an_ack_of_a_range_raises_the_floor(queue: SmallQueue) -> None:
    queue.publish(10)
    queue.grant()
    billing = queue["billing"]
    assert billing.ack(1, bitmap(0, 1, 2, 3), queue.now_us) == Acked("billing", 1, (0, 4), queue.now_us)
    assert billing.settled.floor == 4
    assert not billing.settled.above


def test_an_ack_of_the_whole_lease_ends_it(queue: SmallQueue) -> None:
    queue.publish(10)
    queue.grant()
    assert queue["billing"].ack(1, None, queue.now_us) == Acked("billing", 1, (0, 10), queue.now_us)
    assert not queue["billing"].leases.by_id
    assert queue["billing"].next_tick_us() is None


def test_an_ack_names_only_what_the_lease_still_holds(queue: SmallQueue) -> None:
    queue.publish(4)
    queue.grant("ann", 2)
    queue.grant("bob", 2)
    queue.ack(0)
    event = queue["billing"].ack(1, bitmap(0, 1, 2, 3, 99), queue.now_us)
    assert event is not None
    assert listed(event.offsets) == [1]


def test_a_stale_ack_is_ignored(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant("ann")
    queue.wait(30)
    assert queue["billing"].ack(1, None, queue.now_us) is None
    queue.wait(1)
    assert queue.grant("bob") == [0]
    assert queue["billing"].ack(1, bitmap(0), queue.now_us) is None
    assert queue["billing"].leases.outstanding == bitmap(0)


def test_a_second_ack_is_ignored(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant()
    queue.ack(0)
    assert queue["billing"].ack(1, None, queue.now_us) is None


def test_an_ack_within_a_transaction_is_all_or_nothing_and_changes_nothing_yet(queue: SmallQueue) -> None:
    queue.publish(3)
    queue.grant()
    queue.ack(0)
    billing = queue["billing"]
    assert billing.ack_whole(1, bitmap(0, 1), queue.now_us) is None
    planned = billing.ack_whole(1, bitmap(1, 2), queue.now_us)
    assert planned == Acked("billing", 1, (1, 3), queue.now_us)
    assert billing.leases.outstanding == bitmap(1, 2)
    queue.happen(planned)
    assert billing.settled.floor == 3


# --- leases -----------------------------------------------------------------------------------------------------------


def test_a_lease_lives_to_its_deadline_and_not_longer(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.grant()
    assert queue.wait(29.999_999) == []
    events = queue.wait(0.000_001)
    assert [(event.cause, listed(event.offsets)) for event in events if isinstance(event, Failed)] == [
        ("lease expired", [0, 1])
    ]


def test_an_extended_lease_lives_to_its_new_deadline(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant()
    billing = queue["billing"]
    assert billing.extend(1, queue.now_us + 45 * SECOND) == Extended("billing", 1, queue.now_us + 45 * SECOND)
    assert queue.wait(44.9) == []
    assert failed(queue.wait(0.1)) == [0]


def test_a_lease_can_be_extended_to_an_earlier_moment(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant()
    queue["billing"].extend(1, queue.now_us + SECOND)
    assert queue["billing"].next_tick_us() == queue.now_us + SECOND
    assert failed(queue.wait(1)) == [0]
    assert failed(queue.wait(29)) == []


def test_a_lease_that_is_over_cannot_be_extended(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant()
    queue.ack(0)
    assert queue["billing"].extend(1, queue.now_us + SECOND) is None


def test_released_messages_are_ready_at_once_and_no_attempt_counts(queue: SmallQueue) -> None:
    queue.publish(3)
    queue.grant("ann")
    queue.release(1, 2)
    assert queue.grant("bob") == [1, 2]
    assert queue["billing"].attempts.failures(1) == 0


def test_the_end_of_a_connection_fails_its_bound_leases_only(queue: SmallQueue) -> None:
    queue.publish(3)
    queue.grant("ann", 1)
    queue.grant("bob", 1)
    queue.grant("ann", 1, bound=False)
    events = queue.end_connection("ann")
    assert [(event.cause, listed(event.offsets)) for event in events if isinstance(event, Failed)] == [
        ("connection ended", [0])
    ]
    queue.wait(0)
    assert queue.grant("cyd") == [0]
    assert queue["billing"].attempts.failures(0) == 1


def test_deadlines_of_leases_that_are_over_are_not_kept(queue: SmallQueue) -> None:
    queue.publish(50_000)
    queue.grant("slow", 1)
    billing = queue["billing"]
    for lease in range(1_000_000, 1_010_000):
        billing.grant("ann", 1, lease_from=lease, now_us=queue.now_us)
        billing.ack(lease, None, queue.now_us)
    assert len(billing.leases._deadlines) < 2_000
    assert billing.next_tick_us() == queue.now_us + 30 * SECOND


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_nacked_message_comes_back_after_the_delay_that_was_asked_for(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.grant()
    queue.nack(1, delay_us=5 * SECOND, reason="busy")
    queue.wait(4.999)
    assert queue.grant() == []
    queue.wait(0.001)
    assert queue.grant() == [1]


def test_a_nack_carries_its_reason_and_what_it_covers(queue: SmallQueue) -> None:
    queue.publish(3)
    queue.grant()
    (event,) = queue.nack(0, 1, reason="busy")
    assert event == Failed("billing", 1, (0, 2), queue.now_us, queue.now_us + SECOND, "nack", "busy")


def test_a_nack_of_nothing_that_is_held_is_ignored(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant()
    assert queue["billing"].fail(1, bitmap(7), queue.now_us, cause="nack") == []
    assert queue["billing"].fail(99, None, queue.now_us, cause="nack") == []


def test_back_off_doubles_up_to_its_longest() -> None:
    retry = Retry(delay_seconds=1, delay_seconds_max=5)
    assert [retry.delay_us(failures) / SECOND for failures in (1, 2, 3, 4, 5, 900)] == [1, 2, 4, 5, 5, 5]


def test_fixed_back_off_stays_the_same() -> None:
    retry = Retry(kind="fixed", delay_seconds=2)
    assert [retry.delay_us(failures) / SECOND for failures in (1, 2, 3)] == [2, 2, 2]


def test_one_nack_gives_each_message_the_pause_of_its_own_attempt(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.grant()
    queue.nack(0)
    queue.wait(1)
    queue.release(1)
    queue.grant()
    events = queue.nack(0, 1)
    pauses = {
        tuple(listed(event.offsets)): event.due_us - event.time_us for event in events if isinstance(event, Failed)
    }
    assert pauses == {(1,): SECOND, (0,): 2 * SECOND}


def test_attempts_are_counted_until_the_message_is_settled(queue: SmallQueue) -> None:
    queue.publish(2)
    for attempt in range(3):
        assert queue.grant() == ([0, 1] if attempt == 0 else [0])
        assert queue["billing"].attempts.failures(0) == attempt
        queue.nack(0, delay_us=0)
        queue.wait(0)
    queue.grant()
    queue.ack(0)
    assert queue["billing"].attempts.levels == []


# --- death ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mortal() -> SmallQueue:
    queue = SmallQueue()
    queue.subscribe(retry=Retry(kind="fixed", delay_seconds=1, attempts_max=2))
    return queue


def test_a_message_dies_at_its_last_attempt_and_not_before(mortal: SmallQueue) -> None:
    mortal.publish(1)
    mortal.grant()
    mortal.nack(0)
    assert not mortal["billing"].dying
    mortal.wait(1)
    mortal.grant()
    mortal.nack(0, reason="cannot parse")
    (group,) = mortal["billing"].dying
    assert (listed(group.offsets), group.cause, group.reason) == ([0], "nack", "cannot parse")
    mortal.wait(1_000)
    assert mortal.grant() == []


def test_the_dead_are_settled_when_they_are_buried(mortal: SmallQueue) -> None:
    _kill(mortal, 3)
    mortal.bury(1)
    assert [listed(group.offsets) for group in mortal["billing"].dying] == [[0, 2]]
    mortal.bury(0, 2)
    assert not mortal["billing"].dying
    assert mortal["billing"].settled.floor == 3
    assert mortal["billing"].attempts.levels == []


def test_equal_deaths_are_one_group_and_others_keep_their_reasons(mortal: SmallQueue) -> None:
    mortal.publish(5)
    mortal.grant()
    mortal.nack(0, 1, 2, 3, 4)
    mortal.wait(1)
    mortal.grant()
    for offset, reason in enumerate(["full", "full", "odd", "full", "full"]):
        mortal.nack(offset, reason=reason)
    groups = [(listed(group.offsets), group.reason) for group in mortal["billing"].dying]
    assert groups == [([0, 1], "full"), ([2], "odd"), ([3, 4], "full")]


def test_deaths_after_different_numbers_of_attempts_are_different_groups(mortal: SmallQueue) -> None:
    mortal.publish(2)
    mortal.grant()
    mortal.nack(0, delay_us=0)
    mortal.wait(0)
    mortal.grant()
    mortal.happen(Configured("billing", _with_attempts(mortal, 1)))
    mortal.nack(0)
    mortal.nack(1)
    assert [listed(group.offsets) for group in mortal["billing"].dying] == [[0], [1]]


def test_a_group_that_is_being_buried_stays_the_same_object_while_others_die(mortal: SmallQueue) -> None:
    _kill(mortal, 2)
    first = mortal["billing"].dying[0]
    mortal.publish(1)
    mortal.grant()
    mortal.nack(2, delay_us=0)
    mortal.wait(0)
    mortal.grant()
    mortal.nack(2, reason="other")
    assert first in mortal["billing"].dying
    mortal.seek(0)
    assert first not in mortal["billing"].dying


def test_a_lease_that_expires_counts_as_an_attempt_and_says_so(mortal: SmallQueue) -> None:
    mortal.publish(1)
    for _ in range(2):
        mortal.grant()
        mortal.wait(30)
        mortal.wait(1)
    assert mortal["billing"].dying[0].cause == "lease expired"


# --- giving up and seeking --------------------------------------------------------------------------------------------


def test_a_seek_back_makes_everything_new(mortal: SmallQueue) -> None:
    _kill(mortal, 2)
    mortal.publish(2)
    mortal.grant("ann", 1)
    mortal.seek(1)
    assert not mortal["billing"].dying
    assert mortal.grant("bob") == [1, 2, 3]
    assert mortal["billing"].attempts.failures(1) == 0
    assert mortal["billing"].settled.floor == 1


def test_a_seek_forward_settles_what_it_passes(queue: SmallQueue) -> None:
    queue.publish(5)
    queue.grant("ann", 2)
    queue.seek(3)
    assert queue["billing"].ack(1, None, queue.now_us) is None
    assert queue.grant() == [3, 4]


def test_a_seek_to_the_end_leaves_nothing(queue: SmallQueue) -> None:
    queue.publish(5)
    queue.seek(5)
    assert queue.grant() == []
    queue.publish(1)
    assert queue.grant() == [5]


def test_a_clock_that_goes_back_delays_and_never_repeats(queue: SmallQueue) -> None:
    queue.publish(2)
    queue.grant("ann", 1)
    queue.nack(0)
    queue.wait(1)
    queue.wait(-3_600)
    assert queue.grant("bob") == [0, 1]
    queue.nack(0, 1)
    queue.restart()
    assert queue.grant() == []
    queue.wait(2)
    assert queue.grant() == [0, 1]
    assert queue["billing"].attempts.failures(0) == 2


def test_a_grant_before_its_moment_as_a_clock_that_went_back_tells_it_is_folded_as_a_grant(queue: SmallQueue) -> None:
    queue.publish(1)
    queue.grant("ann")
    queue.nack(0)
    queue.wait(1)
    queue.wait(-60)
    assert queue.grant("http", bound=False) == [0]
    queue.restart()
    queue.check()
    assert not queue["billing"].parked
    queue.ack(0)


def _kill(queue: SmallQueue, count: int) -> None:
    """Let the first messages run out of their two attempts."""
    queue.publish(count)
    for _ in range(2):
        queue.grant(count=count)
        queue.nack(*range(count), delay_us=0)
        queue.wait(0)


def _with_attempts(queue: SmallQueue, attempts_max: int) -> SubscriptionConfig:
    config = queue["billing"].config
    return msgspec.structs.replace(config, retry=msgspec.structs.replace(config.retry, attempts_max=attempts_max))
