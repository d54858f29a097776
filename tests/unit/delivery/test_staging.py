"""What is staged is a fold: parts that grow and end, publishes that are decided, writers and their epochs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.delivery import writers
from sealane.delivery.events import (
    BatchStaged,
    EpochDone,
    Event,
    PartsEnded,
    PublishAdvanced,
    PublishDecided,
    Snapshot,
    decode_events,
    encode_events,
)
from sealane.delivery.limits import DeliveryLimits
from sealane.delivery.partition import Partition
from sealane.delivery.snapshot import FORMAT, dump_partition
from sealane.delivery.writers import Writers
from tests.unit.delivery.small_queue import SECOND, START_US, TOPIC, SmallQueue

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


def staged(part: bytes, number: int, base: int, count: int = 10, *, at: int = 0, given: bool = False) -> BatchStaged:
    return BatchStaged(part, number, "default/orders", base, count, 100 * count, START_US + at * SECOND, given)


def folded(*events: Event) -> Partition:
    partition = Partition("default/_staged")
    for event in events:
        partition.apply(event)
    return partition


def ended(*parts: bytes) -> PartsEnded:
    return PartsEnded(list(parts), START_US)


def decided(*parts: bytes, messages: int) -> PublishDecided:
    return PublishDecided("t", None, list(parts), {"default/orders": 7}, messages, START_US)


def test_a_part_grows_by_its_batches_and_goes_as_a_whole() -> None:
    partition = folded(staged(A, 0, 0), staged(B, 0, 10), staged(A, 1, 20))
    assert [batch.base for batch in partition.staged.batches([A])] == [0, 20]
    assert [batch.base for batch in partition.staged.batches([B, A, C])] == [10, 0, 20]
    assert (partition.staged.messages, partition.staged.bytes) == (30, 3_000)
    partition.apply(ended(A))
    assert list(partition.staged.parts) == [B]
    assert (partition.staged.messages, partition.staged.bytes) == (10, 1_000)


def test_a_part_that_is_over_is_known_for_a_day() -> None:
    partition = folded(staged(A, 0, 0), ended(A))
    assert partition.staged.has_ended(A)
    assert not partition.staged.has_ended(B)
    partition.apply(PartsEnded([B], START_US + 3 * 24 * 3600 * SECOND))
    assert not partition.staged.has_ended(A)
    assert partition.staged.has_ended(B)


def test_nothing_is_trimmed_that_a_part_has_yet_to_publish() -> None:
    partition = folded(staged(A, 0, 0), staged(B, 0, 10), staged(A, 1, 20))
    partition.recovered(0, 30)
    assert partition.settled_floor() == 0
    partition.apply(ended(A))
    assert partition.settled_floor() == 10
    partition.apply(ended(B))
    assert partition.settled_floor() == 30


def test_what_a_decided_publish_has_behind_it_may_be_trimmed() -> None:
    partition = folded(staged(A, 0, 0), staged(B, 0, 10), staged(A, 1, 20), decided(A, B, messages=5))
    assert partition.staged.floor(30) == 0
    partition.apply(PublishAdvanced("t", None, 10))
    assert partition.staged.floor(30) == 10  # The first batch of A is published; its second comes before B.
    partition.apply(PublishAdvanced("t", None, 25))
    assert partition.staged.floor(30) == 10
    partition.apply(ended(A, B))
    assert partition.staged.floor(30) == 30
    assert partition.staged.decisions == {}


def test_a_decided_part_is_never_too_old() -> None:
    partition = folded(staged(A, 0, 0, at=0), staged(B, 0, 10, at=0), staged(C, 0, 20, at=9))
    assert partition.staged.older_than(START_US + 5 * SECOND) == [A, B]
    partition.apply(decided(A, messages=0))
    assert partition.staged.is_decided(A)
    assert partition.staged.older_than(START_US + 5 * SECOND) == [B]


def test_a_part_is_as_old_as_its_last_batch() -> None:
    partition = folded(staged(A, 0, 0, at=0), staged(A, 1, 10, at=9))
    assert partition.staged.older_than(START_US + 5 * SECOND) == []


PARTS = st.sampled_from([A, B, C])
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("stage"), PARTS),
        st.tuples(st.just("end"), PARTS),
        st.tuples(st.just("decide"), PARTS),
        st.tuples(st.just("advance"), PARTS),
        st.tuples(st.just("epoch"), PARTS),
    ),
    max_size=30,
)


def history(happenings: list[tuple[str, bytes]]) -> list[Event]:
    """Events such as a node has them, from what a test draws."""
    events: list[Event] = []
    base = 0
    numbers: dict[bytes, int] = {}
    for time, (what, part) in enumerate(happenings):
        name = part[:1].decode()
        match what:
            case "stage":
                number = numbers[part] = numbers.get(part, -1) + 1
                events.append(staged(part, number, base, at=time, given=number % 2 == 0))
                base += 10
            case "end":
                numbers.pop(part, None)
                events.append(PartsEnded([part], START_US + time * SECOND))
            case "decide":
                events.append(PublishDecided(name, 3, [part], {"default/orders": 1}, time, START_US))
            case "advance":
                events.append(PublishAdvanced(name, 3, time))
            case _:
                events.append(EpochDone(name, time, START_US))
    return events


def state(partition: Partition) -> list[object]:
    found: list[object] = msgspec.msgpack.decode(dump_partition(partition))
    return found


@given(before=HAPPENINGS, after=HAPPENINGS)
def test_a_snapshot_in_between_changes_nothing(before: list[tuple[str, bytes]], after: list[tuple[str, bytes]]) -> None:
    events = history([*before, *after])
    first, rest = events[: len(before)], events[len(before) :]
    straight = folded(*events)
    taken = folded(*first).snapshot()
    assert state(folded(taken, *rest)) == state(straight)
    # Journal entries from before a snapshot may be there still: it replaces what they say.
    assert state(folded(*first, taken, *rest)) == state(straight)
    again = folded(taken, *rest)
    assert (again.staged.messages, again.staged.bytes) == (straight.staged.messages, straight.staged.bytes)
    assert again.staged.floor(10_000) == straight.staged.floor(10_000)
    assert [again.staged.is_decided(part) for part in (A, B, C)] == [
        straight.staged.is_decided(part) for part in (A, B, C)
    ]


@given(happenings=HAPPENINGS)
def test_the_events_survive_their_encoding(happenings: list[tuple[str, bytes]]) -> None:
    events = history(happenings)
    assert decode_events(encode_events(events)) == events


def test_a_snapshot_of_the_first_format_has_nothing_staged() -> None:
    queue = SmallQueue()
    queue.subscribe()
    queue.publish(3)
    older = state(queue.partition)[:-2]
    older[0] = 1
    assert FORMAT == 2
    partition = folded(staged(A, 0, 0), EpochDone("w", 5, START_US), Snapshot(msgspec.msgpack.encode(older)))
    assert partition.staged.parts == {}
    assert not partition.epoch_done("w", 5)
    assert list(partition.subscriptions) == ["billing"]


def test_a_writer_has_done_every_epoch_up_to_its_last() -> None:
    partition = folded(EpochDone("w", 5, START_US))
    assert [partition.epoch_done("w", epoch) for epoch in (0, 4, 5, 6)] == [True, True, True, False]
    assert not partition.epoch_done("another", 0)
    partition.apply(EpochDone("w", 3, START_US))
    assert partition.epoch_done("w", 5)


def test_the_least_recently_heard_writers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "WRITERS_MAX", 3)
    known = Writers()
    for number in range(3):
        known.remember(b"%d" % number, 1)
    known.remember(b"0", 2)
    known.remember(b"3", 1)
    assert [known.is_done(b"%d" % number, 1) for number in range(4)] == [True, False, True, True]


def test_a_partition_knows_how_much_room_it_has() -> None:
    queue = SmallQueue(DeliveryLimits(messages_max=5))
    assert queue.partition.room() is None  # Nobody has anything to do: nothing is refused.
    queue.subscribe()
    queue.publish(3)
    assert queue.partition.room() == 2
    queue.publish(2)
    assert queue.partition.room() == 0
    assert SmallQueue().partition.room() is None
    dropping = SmallQueue(DeliveryLimits(messages_max=5, when_full="drop-oldest"))
    dropping.subscribe()
    assert dropping.partition.room() is None
    assert queue.partition.topic == TOPIC
