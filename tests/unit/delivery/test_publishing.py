"""Publishing: offsets, repeats by producer and by id, transactions, and queues that are full."""

from __future__ import annotations

import pytest

from sealane.delivery.events import Dropped, Published
from sealane.delivery.limits import DeliveryLimits
from sealane.delivery.producers import PRODUCERS_MAX, REMEMBERED_BATCHES, Producers
from sealane.errors import QueueFull, StaleSequence, SubscriptionNotFound
from sealane.message import Batch, Row
from tests.unit.delivery.small_queue import SECOND, SmallQueue, identified, listed, plain, rows

PRODUCER = bytes(15) + b"p"


def by_producer(sequence: int, count: int = 1) -> Batch:
    return rows(*[Row(b"m")] * count, producer=PRODUCER, sequence=sequence)


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_are_dense_from_zero() -> None:
    queue = SmallQueue()
    assert queue.publish(3).offsets == range(3)
    assert queue.publish(2).offsets == range(3, 5)
    assert queue.partition.end == 5


def test_a_plan_changes_nothing() -> None:
    queue = SmallQueue()
    publication = queue.partition.publish(identified(1), queue.now_us)
    assert queue.partition.end == 0
    assert queue.partition.ids.find((1).to_bytes(16, "big")) is None
    assert publication.durable_at == 1


def test_a_plain_batch_is_journalled_as_plain_and_others_are_not() -> None:
    queue = SmallQueue()
    queue.publish(3)
    queue.publish(rows(Row(b"m", priority=6)))
    queue.publish(rows(Row(b"m"), only="billing"))
    assert [event.plain for event in queue.events if isinstance(event, Published)] == [True, False, False]


def test_an_unknown_subscription_is_named() -> None:
    with pytest.raises(SubscriptionNotFound, match="default/orders:nobody"):
        SmallQueue()["nobody"]


# --- idempotent producers ---------------------------------------------------------------------------------------------


def test_a_batch_that_is_sent_again_is_stored_once_and_gets_the_same_offsets() -> None:
    queue = SmallQueue()
    queue.publish(by_producer(0, 3))
    queue.publish(by_producer(1, 2))
    again = queue.publish(by_producer(0, 3))
    assert (again.batch, again.offsets, again.durable_at) == (None, range(3), 3)
    assert queue.partition.end == 5


def test_sequences_may_jump_forward_since_other_partitions_have_the_ones_between() -> None:
    queue = SmallQueue()
    queue.publish(by_producer(4))
    assert queue.publish(by_producer(9)).offsets == range(1, 2)


def test_a_repeat_is_recognised_for_as_many_batches_as_are_remembered() -> None:
    queue = SmallQueue()
    for sequence in range(REMEMBERED_BATCHES + 1):
        queue.publish(by_producer(sequence))
    assert queue.publish(by_producer(1)).offsets == range(1, 2)
    with pytest.raises(StaleSequence) as refused:
        queue.publish(by_producer(0))
    assert (refused.value.expected, refused.value.got) == (REMEMBERED_BATCHES + 1, 0)


def test_a_sequence_that_was_never_seen_and_is_older_is_refused() -> None:
    queue = SmallQueue()
    queue.publish(by_producer(5))
    with pytest.raises(StaleSequence):
        queue.publish(by_producer(3))


def test_repeats_are_recognised_after_a_restart_by_journal_and_by_snapshot() -> None:
    queue = SmallQueue()
    queue.publish(by_producer(0, 2))
    queue.restart()
    assert queue.publish(by_producer(0, 2)).batch is None
    queue.snapshot()
    queue.restart()
    assert queue.publish(by_producer(0, 2)).offsets == range(2)


def test_the_least_recently_heard_producer_is_forgotten_first() -> None:
    producers = Producers()
    for number in range(PRODUCERS_MAX):
        producers.remember(number.to_bytes(16, "big"), 0, number, 1)
    producers.remember(bytes(16), 1, PRODUCERS_MAX, 1)
    producers.remember(b"one more".ljust(16), 0, PRODUCERS_MAX + 1, 1)
    assert producers.repeated(bytes(16), 0) == (0, 1)
    assert producers.repeated((1).to_bytes(16, "big"), 0) is None
    assert producers.repeated((2).to_bytes(16, "big"), 0) == (2, 1)


def test_a_repeated_batch_of_which_some_ids_had_been_here_before_gets_an_offset_for_every_message() -> None:
    queue = SmallQueue()
    queue.publish(identified(7))
    batch = identified(6, 7, 8, producer=PRODUCER, sequence=0)
    assert queue.publish(batch).offsets == [1, 0, 2]
    assert queue.publish(batch).offsets == [1, 0, 2]
    assert queue.partition.end == 3


# --- ids --------------------------------------------------------------------------------------------------------------


def test_a_given_id_is_stored_once_and_found_where_it_is() -> None:
    queue = SmallQueue()
    queue.publish(identified(1, 2))
    again = queue.publish(identified(2, 3, 1))
    assert again.offsets == [1, 2, 0]
    assert again.batch is not None
    assert len(again.batch) == 1
    assert queue.partition.end == 3


def test_an_id_twice_in_one_batch_is_stored_once() -> None:
    queue = SmallQueue()
    publication = queue.publish(identified(1, 1, 2, 1))
    assert publication.offsets == [0, 0, 1, 0]
    assert queue.partition.end == 2
    assert len(queue.partition.ids) == 2


def test_a_batch_of_nothing_but_repeats_stores_nothing() -> None:
    queue = SmallQueue()
    queue.publish(identified(1, 2))
    again = queue.publish(identified(2, 1))
    assert (again.batch, again.events, again.offsets, again.durable_at) == (None, [], [1, 0], 2)


def test_generated_ids_do_not_enter_the_window() -> None:
    queue = SmallQueue()
    queue.publish(1_000)
    assert len(queue.partition.ids) == 0


def test_the_window_survives_a_restart_by_journal_and_by_snapshot() -> None:
    queue = SmallQueue()
    queue.publish(identified(1))
    queue.restart()
    assert queue.publish(identified(1)).offsets == [0]
    queue.snapshot()
    queue.restart()
    assert queue.publish(identified(1)).offsets == [0]


# --- transactions -----------------------------------------------------------------------------------------------------


def test_a_transaction_is_done_once_it_is_and_stays_so_over_restarts() -> None:
    queue = SmallQueue()
    assert not queue.partition.transaction_done("order-42")
    queue.finish("order-42")
    assert queue.partition.transaction_done("order-42")
    queue.restart()
    assert queue.partition.transaction_done("order-42")
    queue.snapshot()
    queue.restart()
    assert queue.partition.transaction_done("order-42")
    assert not queue.partition.transaction_done("order-43")


def test_a_transaction_is_remembered_for_its_window() -> None:
    queue = SmallQueue(DeliveryLimits(transaction_window_seconds=100))
    queue.finish("first")
    queue.now_us += 100 * SECOND
    queue.finish("second")
    assert queue.partition.transaction_done("first")
    queue.now_us += 200 * SECOND
    queue.finish("third")
    assert not queue.partition.transaction_done("first")


def test_new_limits_hold_for_both_windows_from_then_on() -> None:
    queue = SmallQueue()
    queue.partition.configure(DeliveryLimits(id_window_seconds=1, id_window_ids_max=7, transaction_window_seconds=2))
    assert (queue.partition.ids.window_us, queue.partition.ids.ids_max) == (SECOND, 7)
    assert (queue.partition.transactions.window_us, queue.partition.transactions.ids_max) == (2 * SECOND, 7)


# --- full queues ------------------------------------------------------------------------------------------------------


def test_a_queue_takes_messages_up_to_its_limit_and_refuses_one_more() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=10))
    queue.subscribe()
    queue.publish(10)
    with pytest.raises(QueueFull) as refused:
        queue.publish(1)
    assert (refused.value.topic, refused.value.limit, refused.value.value) == ("default/orders", 10, 10)
    assert queue.partition.end == 10
    queue.grant("ann", 1)
    queue.ack(0)
    assert queue.publish(1).offsets == range(10, 11)


def test_a_batch_that_can_never_fit_is_refused() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=10))
    queue.subscribe()
    with pytest.raises(QueueFull):
        queue.publish(11)


def test_the_slowest_subscription_decides_and_settled_ones_do_not_count() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=4))
    queue.publish(100)
    queue.subscribe(floor=100)
    queue.subscribe("slow", floor=98)
    queue.publish(2)
    with pytest.raises(QueueFull):
        queue.publish(1)


def test_a_repeat_is_recognised_by_a_full_queue() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=2))
    queue.subscribe()
    queue.publish(by_producer(0, 2))
    assert queue.publish(by_producer(0, 2)).offsets == range(2)


def test_a_queue_that_drops_the_oldest_stays_at_its_limit() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=10, when_full="drop-oldest"))
    queue.subscribe()
    queue.publish(10)
    assert not _dropped(queue)
    queue.publish(3)
    assert _dropped(queue) == [0, 1, 2]
    assert queue["billing"].depth(13) == 10
    assert queue.grant() == list(range(3, 13))


def test_the_oldest_goes_whether_it_is_leased_waiting_or_dead() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=3, when_full="drop-oldest"))
    queue.subscribe()
    queue.publish(3)
    queue.grant("ann")
    queue.nack(1, delay_us=SECOND)
    queue.publish(2)
    queue.check()
    assert _dropped(queue) == [0, 1]
    queue.wait(1)
    assert queue.grant() == [3, 4]
    assert queue["billing"].ack(1, None, queue.now_us) is not None
    assert queue["billing"].settled.floor == 3


def test_of_a_batch_that_is_larger_than_the_limit_the_newest_stay() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=10, when_full="drop-oldest"))
    queue.subscribe()
    queue.publish(4)
    queue.publish(15)
    assert queue["billing"].depth(19) == 10
    assert queue.grant() == list(range(9, 19))
    queue.restart()
    assert queue["billing"].depth(19) == 10


def test_each_subscription_drops_its_own_oldest() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=2, when_full="drop-oldest"))
    queue.subscribe()
    queue.subscribe("audit")
    queue.publish(2)
    queue.grant("ann", 1)
    queue.ack(0)
    queue.publish(1)
    assert _dropped(queue) == []
    assert _dropped(queue, "audit") == [0]


def test_without_a_subscription_there_is_nobody_to_be_full_for() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=1))
    assert queue.publish(plain(100)).offsets == range(100)


def test_several_batches_are_planned_one_after_the_other() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=5, when_full="drop-oldest"))
    queue.subscribe()
    queue.publish(2)
    batches = [plain(3), rows(Row(b"m", priority=9)), plain(1)]
    published = queue.partition.publish_all(batches, queue.now_us)
    places = [(event.base, event.count, event.plain) for event in published if isinstance(event, Published)]
    assert places == [(2, 3, True), (5, 1, False), (6, 1, True)]
    assert queue.partition.end == 2
    queue.happen(*published)
    assert _dropped(queue) == [0, 1]


def test_several_batches_are_refused_together_if_they_do_not_fit() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=5))
    queue.subscribe()
    with pytest.raises(QueueFull):
        queue.partition.publish_all([plain(3), plain(3)], queue.now_us)


def _dropped(queue: SmallQueue, name: str = "billing") -> list[int]:
    events = [event for event in queue.events if isinstance(event, Dropped) and event.subscription == name]
    return [offset for event in events for offset in listed(event.offsets)]
