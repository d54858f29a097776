"""Key-shared subscriptions: one consumer a key at a time, and the order of a key whatever fails."""

from __future__ import annotations

import pytest

from sealane.delivery.config import Retry
from sealane.delivery.events import Failed, Released
from sealane.delivery.keyed import KeyedBacklog
from sealane.delivery.offsets import span
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, SmallQueue, bitmap, expired, listed, plain, rows


@pytest.fixture
def queue() -> SmallQueue:
    queue = SmallQueue()
    queue.subscribe(mode="key-shared")
    return queue


def keyed(queue: SmallQueue, keys: str) -> None:
    """Publish one message a letter, of that key; a dash has none."""
    queue.publish(rows(*(Row(b"m", key=None if key == "-" else key.encode()) for key in keys)))


def test_a_key_belongs_to_one_consumer_while_it_holds_leases(queue: SmallQueue) -> None:
    keyed(queue, "abaab")
    assert queue.grant("ann", 1) == [0]
    assert queue.grant("bob", 9) == [1, 4]
    assert queue.grant("ann", 9) == [2, 3]


def test_a_key_is_free_once_everything_granted_of_it_is_settled(queue: SmallQueue) -> None:
    keyed(queue, "aaa")
    queue.grant("ann", 2)
    queue.ack(0)
    assert queue.grant("bob") == []
    queue.ack(1)
    assert queue.grant("bob") == [2]


def test_messages_without_a_key_go_to_whoever_asks(queue: SmallQueue) -> None:
    keyed(queue, "----")
    assert queue.grant("ann", 2) == [0, 1]
    queue.nack(0)
    assert queue.grant("bob") == [2, 3]


def test_the_empty_key_is_a_key(queue: SmallQueue) -> None:
    queue.publish(rows(Row(b"m", key=b""), Row(b"m", key=b"")))
    assert queue.grant("ann", 1) == [0]
    assert queue.grant("bob") == []


def test_a_failure_brings_later_messages_of_the_key_back_without_counting_an_attempt(queue: SmallQueue) -> None:
    keyed(queue, "abab")
    queue.grant("ann")
    events = queue.nack(0)
    assert [(type(event), listed(event.offsets)) for event in events if isinstance(event, Failed | Released)] == [
        (Failed, [0]),
        (Released, [2]),
    ]
    assert listed(queue["billing"].leases.outstanding) == [1, 3]
    assert queue.grant("ann") == []
    queue.wait(1)
    assert queue.grant("bob") == [0, 2]
    assert queue["billing"].attempts.failures(2) == 0


def test_later_messages_come_back_from_every_lease(queue: SmallQueue) -> None:
    keyed(queue, "aaa")
    for _ in range(3):
        queue.grant("ann", 1)
    events = queue.nack(0)
    assert sorted(event.lease for event in events if isinstance(event, Released)) == [2, 3]


def test_a_failure_in_the_middle_leaves_earlier_messages_with_their_consumer(queue: SmallQueue) -> None:
    keyed(queue, "aaaa")
    queue.grant("ann", 3)
    queue.nack(1)
    assert listed(queue["billing"].leases.outstanding) == [0]
    queue.wait(1)
    assert queue.grant("bob") == []
    assert queue.grant("ann") == [1, 2, 3]


def test_nothing_later_is_granted_while_a_message_waits_for_its_retry(queue: SmallQueue) -> None:
    keyed(queue, "ab")
    queue.grant("ann", 1)
    queue.nack(0)
    keyed(queue, "ab")
    assert queue.grant("bob") == [1, 3]
    queue.wait(1)
    assert queue.grant("bob") == [0, 2]


def test_what_is_before_a_waiting_message_is_not_held_up(queue: SmallQueue) -> None:
    queue.publish(
        rows(Row(b"m", key=b"a"), Row(b"m", key=b"a", deliver_at_us=queue.now_us + SECOND), Row(b"m", key=b"a"))
    )
    assert queue.grant("ann") == [0]
    queue.wait(1)
    assert queue.grant("ann") == [1, 2]


def test_a_release_brings_later_messages_of_the_key_back_from_every_lease(queue: SmallQueue) -> None:
    keyed(queue, "abaa")
    queue.grant("ann", 3)
    queue.grant("ann", 1)
    queue.release(2)
    assert sorted(queue["billing"].leases.outstanding) == [0, 1]
    assert queue.grant("ann", 9) == [2, 3]


def test_no_prefix_of_the_journal_lets_two_consumers_hold_a_key(queue: SmallQueue) -> None:
    keyed(queue, "a")
    keyed(queue, "a")
    queue.grant("http", 2, bound=False)
    queue.release(0)
    queue.restart()
    queue.partition.scan(queue["billing"], *queue.log[0], queue.now_us)
    assert queue["billing"].grant("ann", 9, lease_from=9, now_us=queue.now_us)
    assert [lease.consumer for lease in queue["billing"].leases.by_id.values()] == ["ann"]


def test_a_dead_message_holds_its_key_until_it_is_buried() -> None:
    queue = SmallQueue()
    queue.subscribe(mode="key-shared", retry=Retry(attempts_max=1))
    keyed(queue, "aab")
    queue.grant("ann")
    queue.nack(0)
    assert queue.grant("bob") == []
    queue.bury(0)
    assert queue.grant("bob") == [1]


def test_an_expired_message_frees_its_key(queue: SmallQueue) -> None:
    queue.publish(rows(Row(b"m", key=b"a", expires_us=queue.now_us + SECOND), Row(b"m", key=b"a")))
    queue.grant("ann", 1)
    queue.nack(0, delay_us=60 * SECOND)
    assert expired(queue.wait(1)) == [0]
    assert queue.grant("bob") == [1]


def test_the_end_of_a_connection_frees_its_keys(queue: SmallQueue) -> None:
    keyed(queue, "aab")
    queue.grant("ann", 1)
    queue.grant("ann", 1)
    queue.end_connection("ann")
    queue.wait(0)
    assert queue.grant("bob") == [0, 1, 2]
    assert [queue["billing"].attempts.failures(offset) for offset in (0, 1)] == [1, 0]


def test_order_survives_a_restart(queue: SmallQueue) -> None:
    keyed(queue, "aab")
    queue.grant("ann")
    queue.nack(0)
    queue.restart()
    assert queue.grant("bob") == [2]
    queue.wait(1)
    assert queue.grant("cyd") == [0, 1]


def test_a_lease_that_outlives_a_restart_still_holds_its_key(queue: SmallQueue) -> None:
    keyed(queue, "aab")
    queue.grant("ann", 1, bound=False)
    queue.restart()
    assert queue.grant("bob") == [2]
    assert queue.grant("ann") == [1]


def test_a_lease_that_ends_before_its_key_is_known_again_takes_everything_later_back(queue: SmallQueue) -> None:
    keyed(queue, "aab")
    queue.grant("ann", 1, bound=False)
    queue.wait(20)
    queue.grant("ann", 1, bound=False)
    queue.restart()
    queue.wait(10)
    assert not queue["billing"].leases.outstanding
    queue.wait(1)
    assert queue.grant("bob") == [0, 1, 2]


def test_nothing_is_remembered_of_keys_whose_messages_are_settled(queue: SmallQueue) -> None:
    keyed(queue, "abcabc")
    queue.grant("ann")
    queue.ack(0, 1, 2, 3, 4, 5)
    backlog = queue["billing"].backlog
    assert isinstance(backlog, KeyedBacklog)
    assert not backlog._lanes
    assert not backlog._by_offset
    assert not backlog._free
    assert not backlog._held


def test_forgetting_a_long_run_of_which_little_is_known_is_no_walk_over_it() -> None:
    backlog = KeyedBacklog()
    backlog.learn(b"a", bitmap(3, 5))
    backlog.put_back(bitmap(3, 5))
    backlog.forget(span(4, 10**12))
    assert listed(backlog.check()) == [3]


def test_a_lost_run_ends_leases_and_frees_keys(queue: SmallQueue) -> None:
    keyed(queue, "aaab")
    queue.grant("ann", 2)
    queue.record(queue.partition.lose(0, 2, queue.now_us))
    queue.check()
    assert queue.grant("bob") == [2, 3]


def test_a_batch_without_keys_needs_no_lanes(queue: SmallQueue) -> None:
    queue.publish(plain(1_000))
    assert len(queue.grant("ann")) == 1_000
    backlog = queue["billing"].backlog
    assert isinstance(backlog, KeyedBacklog)
    assert not backlog._lanes
