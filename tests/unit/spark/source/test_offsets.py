"""Positions in logs: where a read begins, how far it goes, how it is shared among tasks, and what is gone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.node.logs import PartitionLog, TopicLog
from sealane.spark.errors import InvalidCheckpoint, InvalidOption, LogCutShort, Loss, TopicRecreated
from sealane.spark.source.planning.admission import admit
from sealane.spark.source.planning.chosen_offsets import beginning, ending
from sealane.spark.source.planning.offsets import (
    Positions,
    TopicPositions,
    check_topics,
    count,
    ends_of,
    from_json,
    gone,
    losses,
    moved_on,
    reachable,
    to_json,
)
from sealane.spark.source.planning.splitting import splits

ORDERS = "default/orders"


def log(name: str, *spans: tuple[int, int], incarnation: int = 7, at: int | None = None) -> TopicLog:
    partitions = [PartitionLog(number, start, end, at) for number, (start, end) in enumerate(spans)]
    return TopicLog(name, incarnation, partitions)


def positions(incarnation: int = 7, **topics: dict[int, int]) -> Positions:
    return {f"default/{name}": TopicPositions(incarnation, offsets) for name, offsets in topics.items()}


names = st.sampled_from(["default/a", "default/b", "shop/a", "shop/orders.eu"])
offsets = st.integers(0, 10**12)


@st.composite
def stretches(draw: st.DrawFn, length_max: int = 10_000) -> tuple[Positions, Positions]:
    """A beginning and an end: some partitions have nothing, some come in only at the end."""
    start: dict[str, TopicPositions] = {}
    end: dict[str, TopicPositions] = {}
    for name in draw(st.sets(names, min_size=1)):
        begins = draw(st.dictionaries(st.integers(0, 12), offsets, min_size=1, max_size=6))
        incarnation = draw(st.integers(0, 2**63))
        end[name] = TopicPositions(
            incarnation, {number: at + draw(st.integers(0, length_max)) for number, at in begins.items()}
        )
        known = {number: at for number, at in begins.items() if draw(st.booleans()) or number == 0}
        if draw(st.booleans()):
            start[name] = TopicPositions(incarnation, known)
    return start, end


# --- in a checkpoint --------------------------------------------------------------------------------------------------


def test_a_checkpoint_has_topics_incarnations_and_offsets_in_one_order() -> None:
    written = to_json(positions(b={0: 1}, a={10: 4, 2: 3}))
    assert json.dumps(written) == (
        '{"default/a": {"incarnation": 7, "2": 3, "10": 4}, "default/b": {"incarnation": 7, "0": 1}}'
    )


@given(stretches())
def test_what_is_written_is_read_back_and_the_same_text_again(stretch: tuple[Positions, Positions]) -> None:
    _, end = stretch
    text = json.dumps(to_json(end))
    assert from_json(json.loads(text)) == end
    assert json.dumps(to_json(from_json(json.loads(text)))) == text


@pytest.mark.parametrize(
    "offset",
    [{"default/a": {"0": 1}}, {"default/a": {"incarnation": 1, "x": 1}}, {"0": 5}, [], {"a": {"incarnation": "1"}}],
)
def test_offsets_of_another_source_are_refused(offset: object) -> None:
    with pytest.raises(InvalidCheckpoint, match=r"is not of the form .* new checkpointLocation"):
        from_json(offset)


# --- where a read begins and ends -------------------------------------------------------------------------------------


def test_a_read_begins_at_the_first_or_behind_the_last_message() -> None:
    logs = [log(ORDERS, (3, 9), (0, 0))]
    assert beginning("earliest", logs) == positions(orders={0: 3, 1: 0})
    assert beginning("latest", logs) == positions(orders={0: 9, 1: 0})


def test_a_read_begins_at_a_moment() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    logs = [log(ORDERS, (3, 9), at=5)]
    assert beginning(moment, logs) == positions(orders={0: 5})
    assert ending(moment, logs, positions(orders={0: 4})) == positions(orders={0: 5})


def test_partitions_that_are_not_named_are_read_from_end_to_end() -> None:
    logs = [log(ORDERS, (3, 9), (1, 5)), log("shop/returns", (0, 2))]
    start = beginning({"orders": {1: 4}}, logs)

    assert to_json(start) == {
        ORDERS: {"incarnation": 7, "0": 3, "1": 4},
        "shop/returns": {"incarnation": 7, "0": 0},
    }
    assert to_json(ending({"shop/returns": {0: 1}}, logs, start)) == {
        ORDERS: {"incarnation": 7, "0": 9, "1": 5},
        "shop/returns": {"incarnation": 7, "0": 1},
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"orders": {0: 10}}, "10 is beyond the end of 'orders' partition 0, which is 9"),
        ({"orders": {2: 0}}, "'orders' has no partition 2; it has 0 to 1"),
        ({"bills": {0: 1}}, "'bills' is not among the topics that are read, which are default/orders"),
    ],
)
def test_offsets_that_are_not_in_the_log_are_refused(given: dict[str, dict[int, int]], problem: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        beginning(given, [log(ORDERS, (3, 9), (0, 5))])
    assert problem in str(refused.value)


def test_a_name_that_two_domains_have_must_say_which() -> None:
    logs = [log("eu/orders", (0, 5)), log("us/orders", (0, 5))]
    with pytest.raises(InvalidOption, match="could be any of eu/orders, us/orders; name its domain"):
        beginning({"orders": {0: 1}}, logs)
    assert beginning({"us/orders": {0: 1}}, logs)["us/orders"].offsets == {0: 1}


def test_an_end_before_the_beginning_is_refused() -> None:
    with pytest.raises(InvalidOption, match="partition 0 would end at 4, and begins at 5"):
        ending({"orders": {0: 4}}, [log(ORDERS, (0, 9))], positions(orders={0: 5}))


# --- how far it goes --------------------------------------------------------------------------------------------------


def test_a_reader_can_go_to_the_end_of_every_log() -> None:
    assert reachable(positions(orders={0: 3, 1: 2}), [log(ORDERS, (0, 9), (0, 2))]) == positions(orders={0: 9, 1: 2})


def test_what_is_new_comes_in_where_it_begins_before_anything_of_it_is_read() -> None:
    start = positions(orders={0: 9})
    logs = [log("default/new", (4, 8)), log(ORDERS, (0, 9), (0, 5))]

    came_in = reachable(start, logs)

    assert came_in == positions(orders={0: 9, 1: 0}, new={0: 4})
    assert splits(start, came_in) == []
    assert reachable(came_in, logs) == positions(orders={0: 9, 1: 5}, new={0: 8})


def test_a_target_is_never_passed_and_what_came_after_it_waits() -> None:
    start = positions(orders={0: 3})
    target = positions(orders={0: 6, 1: 2})
    logs = [log("default/new", (0, 8)), log(ORDERS, (0, 9), (0, 5), (0, 4))]

    first = reachable(start, logs, target)
    second = reachable(first, logs, target)

    assert first == positions(orders={0: 6, 1: 0})
    assert second == target
    assert reachable(second, logs, target) == second


def test_a_topic_that_is_gone_stays_where_it_is() -> None:
    start = positions(a={0: 3}, b={0: 4})
    assert reachable(start, [log("default/a", (0, 5))]) == positions(a={0: 5}, b={0: 4})
    missing = gone(start, [log("default/a", (0, 5))])
    assert missing is not None
    assert "'default/b' does not exist" in str(missing)
    assert gone(start, [log("default/a", (0, 5)), log("default/b", (0, 5))]) is None


def test_ends_are_behind_the_last_messages() -> None:
    assert ends_of([log(ORDERS, (3, 9), (1, 1))]) == positions(orders={0: 9, 1: 1})


# --- admission --------------------------------------------------------------------------------------------------------


@given(stretches(), st.integers(1, 20_000))
def test_no_more_is_admitted_than_asked_and_no_less_than_there_is(
    stretch: tuple[Positions, Positions], messages_max: int
) -> None:
    start, end = stretch
    admitted = admit(start, end, messages_max)

    assert count(start, admitted) == min(messages_max, count(start, end))
    assert to_json(admitted).keys() == to_json(end).keys()
    for topic, at in admitted.items():
        assert at.offsets.keys() == end[topic].offsets.keys()
        for number, stop in at.offsets.items():
            first = start[topic].offsets.get(number) if topic in start else None
            assert stop == end[topic].offsets[number] if first is None else first <= stop <= end[topic].offsets[number]


@given(stretches(), st.integers(1, 20_000))
def test_every_partition_that_has_something_gets_on_if_there_is_enough(
    stretch: tuple[Positions, Positions], messages_max: int
) -> None:
    start, end = stretch
    waiting = splits(start, end, split_messages=10**18)
    admitted = splits(start, admit(start, end, messages_max), split_messages=10**18)
    assert len(admitted) == min(len(waiting), messages_max)


def test_a_long_partition_gives_more_than_a_short_one() -> None:
    start, end = positions(orders={0: 0, 1: 0, 2: 5}), positions(orders={0: 3_000, 1: 1_000, 2: 6})
    assert admit(start, end, 402) == positions(orders={0: 300, 1: 101, 2: 6})


@given(stretches(length_max=50), st.integers(1, 100))
def test_by_and_by_everything_is_admitted(stretch: tuple[Positions, Positions], messages_max: int) -> None:
    start, end = stretch
    rounds, most = 0, count(start, end) + 1
    while to_json(at := admit(start, end, messages_max)) != to_json(start):
        start, rounds = at, rounds + 1
        assert rounds <= most
    assert to_json(start) == to_json(end)


# --- splits -----------------------------------------------------------------------------------------------------------


@given(stretches(), st.none() | st.integers(1, 40), st.integers(1, 5_000))
def test_splits_take_in_every_message_once(
    stretch: tuple[Positions, Positions], min_partitions: int | None, split_messages: int
) -> None:
    start, end = stretch
    ranges = splits(start, end, min_partitions, split_messages=max(split_messages, count(start, end) // 500 + 1))

    covered: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for each in ranges:
        assert each.start < each.stop <= each.start + max(split_messages, count(start, end) // 500 + 1)
        assert each.incarnation == end[each.topic].incarnation
        covered.setdefault((each.topic, each.partition), []).append((each.start, each.stop))
    expected = {
        (topic, number): (start[topic].offsets[number], stop)
        for topic, at in end.items()
        if topic in start
        for number, stop in at.offsets.items()
        if stop > start[topic].offsets.get(number, stop)
    }
    assert covered.keys() == expected.keys()
    for place, pieces in covered.items():
        assert (pieces[0][0], pieces[-1][1]) == expected[place]
        assert all(one[1] == other[0] for one, other in pairwise(pieces))
    assert len(ranges) >= min(min_partitions or 1, count(start, end))


def test_one_task_reads_a_partition_unless_more_are_asked_for() -> None:
    start, end = positions(orders={0: 0, 1: 0}), positions(orders={0: 100, 1: 300})
    assert [(each.partition, each.start, each.stop) for each in splits(start, end)] == [(0, 0, 100), (1, 0, 300)]
    assert [(each.partition, each.start, each.stop) for each in splits(start, end, 4)] == [
        *[(0, 0, 100)],
        *[(1, 0, 100), (1, 100, 200), (1, 200, 300)],
    ]


# --- what is gone -----------------------------------------------------------------------------------------------------


def test_what_retention_took_is_named_and_can_be_passed_over() -> None:
    start = positions(orders={0: 3, 1: 8})
    logs = [log(ORDERS, (5, 9), (5, 9))]

    assert losses(start, logs) == [Loss(ORDERS, 0, 3, 5)]
    assert str(Loss(ORDERS, 0, 3, 5)) == "default/orders partition 0 offsets [3, 5)"
    assert moved_on(start, logs) == positions(orders={0: 5, 1: 8})
    assert losses(moved_on(start, logs), logs) == []


def test_a_topic_that_was_made_again_is_another_one() -> None:
    with pytest.raises(TopicRecreated, match=r"was incarnation 7, it is 8.* new checkpointLocation"):
        check_topics(positions(orders={0: 0}), [log(ORDERS, (0, 9), incarnation=8)])


@pytest.mark.parametrize("start", [positions(orders={0: 10}), positions(orders={0: 1, 1: 1})])
def test_a_log_that_ends_before_what_was_read_is_another_one_too(start: Positions) -> None:
    with pytest.raises(LogCutShort, match="was put back to an earlier state"):
        check_topics(start, [log(ORDERS, (0, 9))])


def test_positions_that_are_in_the_log_are_fine() -> None:
    check_topics(positions(orders={0: 9}), [log(ORDERS, (0, 9), (0, 4)), log("default/other", (0, 1), incarnation=9)])
