"""What delivery costs, by counting calls and objects: by the batch, not by the message."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap64

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.delivery.events import (
    Acked,
    DeadLettered,
    Event,
    Granted,
    Published,
    Subscribed,
    decode_events,
    encode_events,
)
from sealane.delivery.offsets import from_array, pack, span
from sealane.delivery.partition import Partition
from sealane.delivery.subscription import Subscription
from sealane.message import Batch, Row
from tests.unit.delivery.small_queue import START_US, TOPIC, bitmap, plain, rows

MILLIONS = 10_000_000
MEGABYTE = 1 << 20


def calls(work: Callable[[], Any]) -> int:
    """How many Python and C functions the work calls."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def steps(work: Callable[[], Any]) -> int:
    """How many bytecodes the work runs: no loop over messages escapes this, even one that calls nothing."""
    _traced(lambda: None)  # Python 3.12 begins to tell of bytecodes only after it was asked for them once.
    return _traced(work)


def _traced(work: Callable[[], Any]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        else:
            frame.f_trace_opcodes = True
        return note

    before = sys.gettrace()
    # What other tests have left behind may be finalised at any moment, by code that would be counted here.
    gc.collect()
    gc.disable()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def objects(work: Callable[[], Any]) -> int:
    """How many objects the work leaves behind."""
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        kept = work()
        after = sys.getallocatedblocks()
        del kept
        return after - before
    finally:
        gc.enable()


def partition_with(mode: str = "queue", retry: Retry | None = None) -> tuple[Partition, Subscription]:
    partition = Partition(TOPIC)
    config = SubscriptionConfig(mode=mode, retry=retry or Retry())  # type: ignore[arg-type]
    partition.subscribe("billing", config, 0)
    return partition, partition.subscription("billing")


def there_and_back(partition: Partition, batch: Batch, lease: int) -> list[bytes]:
    """Publish, scan, grant, ack, with the journal entries of each."""
    publication = partition.publish(batch, START_US)
    entries = [encode_events(publication.events)]
    for event in publication.events:
        partition.apply(event)
    partition.committed(partition.end)
    subscription = partition.subscription("billing")
    assert partition.advance(subscription, "billing") is None
    granted = subscription.grant("ann", len(batch), lease_from=lease, now_us=START_US)
    entries.append(encode_events(granted))
    acked = subscription.ack(lease, None, START_US)
    assert acked is not None
    entries.append(encode_events([acked]))
    assert subscription.settled.floor == partition.end
    return entries


# --- a batch costs what a message costs -------------------------------------------------------------------------------


def test_a_batch_of_fifty_thousand_takes_as_many_steps_as_one_of_fifty() -> None:
    counts = []
    for count in (50, 5_000, 50_000):
        partition, _ = partition_with()
        there_and_back(partition, plain(100), 1)
        batch = plain(count)
        counts.append(steps(lambda: there_and_back(partition, batch, 2)))  # noqa: B023
    assert counts[0] == counts[1] == counts[2]
    assert counts[0] < 2_000


def test_a_batch_of_fifty_thousand_leaves_as_many_objects_as_one_of_fifty() -> None:
    counts = []
    for count in (50, 5_000, 50_000):
        partition, _ = partition_with()
        there_and_back(partition, plain(100), 1)
        batch = plain(count)
        counts.append(objects(lambda: there_and_back(partition, batch, 2)))  # noqa: B023
    assert max(counts) - min(counts) <= 8, counts
    assert max(counts) < 100


def test_the_journal_of_a_batch_is_a_few_bytes_whatever_its_length() -> None:
    sizes = []
    for count in (50, 50_000):
        partition, _ = partition_with()
        sizes.append(sum(map(len, there_and_back(partition, plain(count), 1))))
    assert max(sizes) - min(sizes) <= 16
    assert max(sizes) < 200


def test_folding_a_batch_takes_as_many_steps_whatever_its_length() -> None:
    counts = []
    for count in (50, 50_000):
        entries = there_and_back(partition_with()[0], plain(count), 1)
        recovered, _ = partition_with()

        def fold() -> None:
            for entry in entries:  # noqa: B023
                for event in decode_events(entry):
                    recovered.apply(event)  # noqa: B023

        counts.append(steps(fold))
    assert counts[0] == counts[1]


def test_failing_a_whole_lease_takes_as_many_steps_whatever_its_length() -> None:
    counts = []
    for count in (50, 50_000):
        partition, subscription = leased(count)

        def fail_and_return() -> None:
            subscription.fail(1, None, START_US, cause="nack", delay_us=0)  # noqa: B023
            subscription.tick(START_US)  # noqa: B023

        counts.append(steps(fail_and_return))
        assert subscription.backlog.ready_count() == count
        subscription.check(partition.visible)
    assert counts[0] == counts[1]


def test_a_batch_of_two_priorities_costs_a_grant_more_not_a_message_more() -> None:
    counts = []
    for count in (50, 5_000):
        partition, subscription = partition_with()
        batch = rows(*(Row(b"m", priority=5 + number % 2) for number in range(count)))
        for event in partition.publish(batch, START_US).events:
            partition.apply(event)
        partition.committed(count)

        def scan_and_grant() -> None:
            partition.advance(subscription, "billing")  # noqa: B023
            partition.scan(subscription, 0, batch, START_US)  # noqa: B023
            assert len(subscription.grant("ann", count, lease_from=1, now_us=START_US)) == 2  # noqa: B023

        counts.append(steps(scan_and_grant))
    assert counts[0] == counts[1]


# --- scattered work is linear -----------------------------------------------------------------------------------------


def leased(count: int, retry: Retry | None = None) -> tuple[Partition, Subscription]:
    """Everything under lease 1."""
    partition, subscription = partition_with(retry=retry)
    partition.apply(Published(0, count, START_US))
    partition.committed(count)
    partition.advance(subscription, "billing")
    subscription.grant("ann", count, lease_from=1, now_us=START_US)
    return partition, subscription


def nack_every_other(subscription: Subscription, count: int, reason: Callable[[int], str]) -> list[Event]:
    events: list[Event] = []
    for offset in range(0, 2 * count, 2):
        events.extend(
            subscription.fail(1, bitmap(offset), START_US + offset * 100, cause="nack", reason=reason(offset))
        )
    return events


@pytest.mark.slow
def test_a_hundred_thousand_scattered_nacks_and_their_fold_are_linear() -> None:
    costs, folds = [], []
    for count in (50_000, 100_000):
        partition, subscription = leased(2 * count)
        events: list[Event] = []
        costs.append(calls(lambda: events.extend(nack_every_other(subscription, count, lambda _: "busy"))))  # noqa: B023
        entry = encode_events(events)
        recovered, _ = partition_with()
        recovered.apply(Published(0, 2 * count, START_US))

        def fold() -> None:
            for event in decode_events(entry):  # noqa: B023
                recovered.apply(event)  # noqa: B023

        folds.append(calls(fold))
        assert recovered.subscription("billing").parked.members == subscription.parked.members
        subscription.check(partition.visible)
    assert costs[1] / costs[0] <= 2.1
    assert folds[1] / folds[0] <= 2.1
    assert costs[1] / 100_000 < 100


def test_deaths_for_as_many_reasons_as_messages_are_linear_to_the_grave() -> None:
    costs = []
    for count in (2_000, 4_000):
        partition, subscription = leased(2 * count, retry=Retry(attempts_max=1))

        def die_and_be_buried() -> None:
            nack_every_other(subscription, count, lambda offset: f"no order {offset}")  # noqa: B023
            while subscription.dying:  # noqa: B023
                event = DeadLettered("billing", pack(subscription.dying[0].offsets), START_US)  # noqa: B023
                subscription.apply(event)  # noqa: B023

        costs.append(calls(die_and_be_buried))
        subscription.check(partition.visible)
    assert costs[1] / costs[0] <= 2.1


def test_a_batch_of_as_many_moments_as_messages_is_scanned_in_linear_time() -> None:
    costs = []
    for count in (2_000, 4_000):
        partition, subscription = partition_with()
        moments = (START_US + 1_000 * (1 + number * 7_919 % count) for number in range(count))
        batch = rows(*(Row(b"m", expires_us=moment) for moment in moments))
        for event in partition.publish(batch, START_US).events:
            partition.apply(event)
        partition.committed(count)
        costs.append(calls(lambda: partition.scan(subscription, 0, batch, START_US)))  # noqa: B023
        assert len(subscription.expiry.members) == count
    assert costs[1] / costs[0] <= 2.1


def test_a_key_shared_grant_of_many_keys_one_at_a_time_is_linear() -> None:
    costs = []
    for count in (1_000, 2_000):
        partition, subscription = partition_with("key-shared")
        batch = rows(*(Row(b"m", key=str(number).encode()) for number in range(count)))
        for event in partition.publish(batch, START_US).events:
            partition.apply(event)
        partition.committed(count)

        def one_at_a_time() -> None:
            partition.scan(subscription, 0, batch, START_US)  # noqa: B023
            for lease in range(count):  # noqa: B023
                subscription.grant("ann", 1, lease_from=lease, now_us=START_US)  # noqa: B023
            for lease in range(count):  # noqa: B023
                subscription.ack(lease, None, START_US)  # noqa: B023

        costs.append(calls(one_at_a_time))
        assert subscription.settled.floor == count
    assert costs[1] / costs[0] <= 2.1


# --- ten million settled messages -------------------------------------------------------------------------------------


def state_bytes(subscription: Subscription) -> int:
    """What the live sets of a subscription take, as they are in memory: at most 8 KiB for 65,536 offsets."""
    sets = (subscription.settled.above, subscription.leases.outstanding, subscription.parked.members)
    return sum(len(BitMap64(known).serialize()) for known in sets)


def settle(partition: Partition, unsettled: BitMap64) -> Subscription:
    """Ten million messages, all acked but these, in acks of what a grant of ten thousand holds."""
    subscription = partition.subscription("billing")
    for base in range(0, MILLIONS, 10_000):
        these = span(base, base + 10_000) - unsettled
        partition.apply(Published(base, 10_000, START_US))
        partition.apply(Granted("billing", base, "ann", (base, base + 10_000), START_US, START_US + 1))
        partition.apply(Acked("billing", base, pack(these), START_US))
    partition.committed(MILLIONS)
    assert subscription.depth(MILLIONS) == len(unsettled)
    return subscription


def test_ten_million_messages_acked_in_order_are_one_number() -> None:
    partition, subscription = partition_with()
    settle(partition, BitMap64())
    assert subscription.settled.floor == MILLIONS
    assert not subscription.settled.above
    assert len(partition.snapshot().state) < 200


@pytest.mark.parametrize(
    ("unsettled", "snapshot_bytes_max"),
    [
        pytest.param(BitMap64(range(0, MILLIONS, 1_000)), 100_000, id="every thousandth"),
        pytest.param(
            from_array(np.flatnonzero(np.random.default_rng(7).random(MILLIONS) < 0.01).astype(np.uint64)),
            3 * MEGABYTE // 2,
            id="a random hundredth",
        ),
        pytest.param(BitMap64(range(0, MILLIONS, 2)), 3 * MEGABYTE // 2, id="every other"),
    ],
)
def test_ten_million_messages_with_gaps_take_a_few_megabytes(unsettled: BitMap64, snapshot_bytes_max: int) -> None:
    partition, subscription = partition_with()
    settle(partition, unsettled)
    assert state_bytes(subscription) < 2 * MEGABYTE
    state = partition.snapshot()
    assert len(state.state) < snapshot_bytes_max
    copy = Partition(TOPIC)
    copy.apply(Subscribed("billing", subscription.config, 0))
    copy.apply(state)
    assert copy.subscription("billing").settled.above == subscription.settled.above


def test_scanning_past_ten_million_settled_messages_takes_a_few_calls() -> None:
    partition, subscription = partition_with()
    settle(partition, BitMap64(range(0, MILLIONS, 1_000)))
    partition.recovered(0, MILLIONS)
    assert calls(lambda: partition.advance(subscription, "billing")) < 60
    assert subscription.backlog.ready_count() == MILLIONS // 1_000
