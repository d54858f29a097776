"""State is the fold of the journal: recovery, snapshots, and what does not outlive a restart."""

from __future__ import annotations

import msgspec
import pytest

from sealane.delivery.config import Retry
from sealane.delivery.events import Snapshot, Unsubscribed, decode_events, encode_events
from sealane.delivery.limits import DeliveryLimits
from sealane.delivery.partition import Partition
from sealane.delivery.snapshot import FORMAT, dump_partition
from sealane.errors import FormatTooNew
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, TOPIC, SmallQueue, identified, listed, rows


def eventful() -> SmallQueue:
    """A queue to which everything has happened."""
    queue = SmallQueue(DeliveryLimits(id_window_seconds=60))
    queue.subscribe(retry=Retry(kind="fixed", delay_seconds=5, attempts_max=2))
    queue.subscribe("audit", "key-shared")
    queue.publish(20)
    queue.publish(identified(1, 2, 3, producer=b"p" * 16, sequence=4))
    queue.publish(rows(*(Row(b"m", key=b"k", priority=priority) for priority in (1, 9))))
    queue.publish(rows(Row(b"m"), only="audit"))
    queue.finish("order-42")
    queue.grant("ann", 6)
    queue.grant("http", 4, bound=False)
    queue.ack(1, 3)
    queue.nack(0, 2, reason="busy")
    queue.wait(5)
    queue.grant("ann", 6)
    queue.nack(0, reason="broken")
    queue.nack(2, delay_us=50 * SECOND)
    queue.grant("bob", 5, name="audit")
    queue.record(queue.partition.lose(15, 17, queue.now_us))
    return queue


def lasting(partition: Partition) -> list[object]:
    state: list[object] = msgspec.msgpack.decode(dump_partition(partition))
    return state


def recovered(queue: SmallQueue) -> Partition:
    """What the journal folds to, once the log has been scanned and the time looked at."""
    partition = queue.folded()
    for subscription in partition.subscriptions.values():
        queue.scan(subscription, partition)
        subscription.tick(queue.now_us)
        subscription.check(partition.visible)
    return partition


def test_a_fold_of_the_journal_gives_the_lasting_state() -> None:
    queue = eventful()
    assert lasting(recovered(queue)) == lasting(queue.partition)


def test_a_snapshot_gives_the_lasting_state_and_the_tail_goes_on_from_it() -> None:
    queue = eventful()
    before = lasting(queue.partition)
    queue.snapshot()
    assert lasting(queue.folded()) == before
    queue.publish(3)
    queue.grant("ann", 5)
    queue.nack(5, delay_us=SECOND)
    queue.bury(0)
    queue.wait(1)
    assert lasting(recovered(queue)) == lasting(queue.partition)


def test_a_snapshot_in_the_middle_of_the_journal_replaces_what_came_before() -> None:
    queue = eventful()
    queue.record(queue.partition.snapshot())
    assert lasting(queue.folded()) == lasting(queue.partition)
    queue.happen(Unsubscribed("audit"))
    assert list(queue.folded().subscriptions) == ["billing"]


def test_an_answer_to_a_bound_lease_that_a_snapshot_left_out_still_counts() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(4)
    queue.grant()
    queue.snapshot()
    queue.ack(0)
    queue.nack(1, delay_us=60 * SECOND)
    queue.release(2)
    queue.restart()
    assert queue.grant() == [2, 3]
    assert queue["billing"].attempts.failures(1) == 1
    assert queue["billing"].settled.floor == 1


def test_bound_leases_end_with_a_restart_and_no_attempt_counts() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(3)
    queue.grant()
    queue.restart()
    assert queue["billing"].ack(1, None, queue.now_us) is None
    assert queue.grant("bob") == [0, 1, 2]
    assert queue["billing"].attempts.levels == []


def test_unbound_leases_outlive_a_restart_with_their_extended_deadline() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(3)
    queue.grant("http", 2, bound=False)
    extended = queue["billing"].extend(1, queue.now_us + 100 * SECOND)
    assert extended is not None
    queue.record(extended)
    for _ in range(2):
        queue.restart()
        assert queue.grant("bob", 9) == [2]
        queue.release(2)
        queue.snapshot()
    queue.wait(99)
    queue.ack(0)
    assert listed(queue["billing"].leases.outstanding) == [1]


def test_a_message_granted_again_after_a_restart_is_under_its_new_lease_only() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(2)
    queue.grant("ann")
    queue.restart()
    queue.grant("http", bound=False)
    queue.restart()
    assert queue.grant("bob") == []
    queue.ack(0, 1)
    assert queue["billing"].settled.floor == 2


def test_nothing_that_was_acked_is_granted_after_a_restart_whatever_the_order_of_the_acks() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(100)
    queue.grant()
    for offset in [*range(99, 50, -2), *range(0, 40, 3)]:
        queue.ack(offset)
    unsettled = listed(queue["billing"].settled.without(0, 100))
    queue.restart()
    assert queue.grant() == unsettled


def test_the_dead_wait_for_their_burial_through_a_restart_with_cause_and_reason() -> None:
    queue = SmallQueue()
    queue.subscribe(retry=Retry(attempts_max=1))
    queue.publish(3)
    queue.grant()
    queue.nack(0, 1, reason="broken")
    queue.wait(30)
    for _ in range(2):
        queue.restart()
        groups = [(listed(group.offsets), group.cause, group.reason) for group in queue["billing"].dying]
        assert groups == [([0, 1], "nack", "broken"), ([2], "lease expired", None)]
        assert queue.grant() == []
        queue.snapshot()


def test_events_of_a_subscription_that_is_gone_are_ignored() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(1)
    (granted,) = queue.grants()
    queue.happen(Unsubscribed("billing"))
    queue.happen(granted)
    assert queue.folded().subscriptions == {}


def test_events_survive_their_encoding() -> None:
    queue = eventful()
    assert decode_events(encode_events(queue.events)) == queue.events


def test_a_snapshot_of_a_newer_format_is_refused_by_name() -> None:
    state = lasting(eventful().partition)
    state[0] = FORMAT + 1
    with pytest.raises(FormatTooNew, match="a snapshot of 'default/orders'"):
        Partition(TOPIC).apply(Snapshot(msgspec.msgpack.encode(state)))


def test_a_snapshot_shares_nothing_with_the_state_that_goes_on() -> None:
    queue = eventful()
    taken = queue.partition.snapshot()
    copy = Partition(TOPIC)
    copy.apply(taken)
    before = lasting(copy)
    queue.wait(100)
    queue.grant("ann")
    assert lasting(copy) == before
