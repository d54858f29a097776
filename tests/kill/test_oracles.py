"""Each oracle finds what it is there for: a history that is in order is changed in one place, and that is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kill.history import Follower, Grant, History, Kept, Receipt
from tests.kill.oracles import Shape, violations
from tests.kill.recording import Recorder
from tests.kill.rounds import flow_seconds

SHAPE = Shape(
    subscriptions=(("work", "ordered"), ("work", "movers"), ("keys", "keyed"), ("fragile", "careful")),
    in_order=(("work", "ordered"),),
    by_key=(("keys", "keyed"),),
    moves=(("work", "movers", "done"),),
    dead_letters={("fragile", "careful"): "fragile.dead"},
)

Log = dict[str, list[Kept]]


def kept(names: list[str]) -> list[Kept]:
    return [Kept(0, offset, f"id of {name}", name) for offset, name in enumerate(names)]


def in_order() -> tuple[History, Log]:
    """Everything was published, handed to everybody in order, and acknowledged."""
    log = {
        "work": kept(["single/0", "single/1", "stream/0", "single/2"]),
        "done": kept(["single/1", "single/0", "stream/0", "single/2"]),
        "keys": kept(["a/0", "b/0", "a/1", "b/1"]),
        "fragile": kept(["fragile/0", "fragile/1"]),
        "fragile.dead": kept(["fragile/0"]),
    }
    history = History()
    for topic in ("work", "keys", "fragile"):
        for each in log[topic]:
            if each.name.startswith("stream"):
                history.receipts.append(Receipt(topic, each.name, None, None, None))
            else:
                history.receipts.append(Receipt(topic, each.name, each.partition, each.offset, each.id))
    moment = 0
    for topic, subscription in SHAPE.subscriptions:
        for each in log[topic]:
            moment += 10
            grant = Grant(moment, "consumer", topic, subscription, each.partition, each.offset, each.name, 1)
            history.grants.append(grant)
            if each.name != "fragile/0":
                history.acking.add(grant.settling)
                history.acked[grant.settling] = moment + 1
    return history, log


def found(change: Callable[[History, Log], None]) -> list[str]:
    history, log = in_order()
    change(history, log)
    return violations(history, log, SHAPE)


def test_a_history_in_order_is_found_in_order() -> None:
    assert found(lambda history, log: None) == []


def test_a_lost_message_is_found() -> None:
    def lose(history: History, log: Log) -> None:
        del log["keys"][3]

    assert "lost: b/1 (id of b/1) was acknowledged at keys:0@3, where nothing is" in found(lose)


def test_a_lost_message_of_a_producer_that_only_flushes_is_found() -> None:
    def lose(history: History, log: Log) -> None:
        log["work"] = [each for each in log["work"] if each.name != "stream/0"]

    assert "lost: stream/0 of work was acknowledged and is not stored" in found(lose)


@pytest.mark.parametrize("other", [Kept(0, 1, "another id", "single/1"), Kept(0, 1, "id of single/1", "single/9")])
def test_another_message_at_the_offset_of_a_receipt_is_found(other: Kept) -> None:
    def swap(history: History, log: Log) -> None:
        log["work"][1] = other

    assert any(line.startswith("lost: single/1 (id of single/1) was acknowledged at work:0@1") for line in found(swap))


def test_a_message_that_was_stored_twice_is_found() -> None:
    def repeat(history: History, log: Log) -> None:
        log["done"].append(Kept(0, 4, "id", "single/0"))

    assert "stored twice: single/0 is in done 2 times" in found(repeat)
    assert "half a transaction: single/0 is in done 2 times" in found(repeat)


def test_messages_that_were_stored_out_of_order_are_found() -> None:
    def swap(history: History, log: Log) -> None:
        log["work"][0], log["work"][1] = (
            log["work"][1]._replace(offset=0),
            log["work"][0]._replace(offset=1),
        )

    assert "stored out of order: single/0 is behind single/1 in work:0" in found(swap)


def test_a_message_that_nobody_sent_is_found() -> None:
    def invent(history: History, log: Log) -> None:
        log["keys"].append(Kept(0, 4, "id", "c/0"))

    assert "never sent: c/0 is in keys" in found(invent)


def test_an_unsure_message_may_be_there_or_not() -> None:
    def unsure(history: History, log: Log) -> None:
        history.unsure.update({"c/0", "d/0"})
        log["keys"].append(Kept(0, 4, "id", "c/0"))
        history.grants.append(Grant(500, "consumer", "keys", "keyed", 0, 4, "c/0", 1))

    assert found(unsure) == []


def test_a_grant_after_a_confirmed_ack_is_found() -> None:
    def again(history: History, log: Log) -> None:
        history.grants.append(history.grants[0]._replace(time_ns=history.grants[0].time_ns + 2, client="another"))

    [line] = found(again)
    assert line.startswith("granted after ack: single/0 at ('work', 'ordered', 0, 0) to another")


def test_a_grant_before_the_ack_was_confirmed_is_fine() -> None:
    def again(history: History, log: Log) -> None:
        history.grants.insert(1, history.grants[0]._replace(time_ns=history.grants[0].time_ns + 1))

    assert found(again) == []


def test_a_grant_of_something_else_is_found() -> None:
    def mistake(history: History, log: Log) -> None:
        history.grants[1] = history.grants[1]._replace(name="single/7")

    assert any(line.startswith("granted what is not stored: single/7") for line in found(mistake))


def test_a_message_that_a_subscription_never_saw_is_found() -> None:
    def skip(history: History, log: Log) -> None:
        history.grants = [each for each in history.grants if (each.subscription, each.offset) != ("movers", 2)]

    assert found(skip) == ["never granted: stream/0 at work:0@2 on movers"]


def swap_times(history: History, first: int, second: int) -> None:
    history.acked.clear()
    one, two = history.grants[first], history.grants[second]
    history.grants[first], history.grants[second] = (
        one._replace(time_ns=two.time_ns - 1),
        two._replace(time_ns=one.time_ns),
    )


def test_messages_that_came_out_of_order_are_found() -> None:
    def swap(history: History, log: Log) -> None:
        swap_times(history, 1, 2)

    assert any("when offset 1 was due" in line for line in found(swap))


def test_messages_that_come_again_later_are_in_order() -> None:
    def again(history: History, log: Log) -> None:
        history.acked.clear()
        history.grants.append(history.grants[0]._replace(time_ns=5_000, attempt=2))

    assert found(again) == []


def test_messages_of_a_key_that_came_out_of_order_are_found_and_of_two_keys_are_not() -> None:
    first = next(index for index, grant in enumerate(in_order()[0].grants) if grant.topic == "keys")

    def same_key(history: History, log: Log) -> None:
        swap_times(history, first, first + 2)

    def two_keys(history: History, log: Log) -> None:
        swap_times(history, first, first + 1)

    assert "key out of order: a/1 at ('keys', 'keyed', 0, 2), when offset 0 was due" in found(same_key)
    assert found(two_keys) == []


def test_half_a_transaction_is_found() -> None:
    def half(history: History, log: Log) -> None:
        log["done"] = log["done"][1:]

    assert found(half) == ["half a transaction: single/1 was settled in work and is not in done"]


def test_dead_letters_are_accounted_for() -> None:
    def vanish(history: History, log: Log) -> None:
        log["fragile.dead"] = []

    def both(history: History, log: Log) -> None:
        log["fragile.dead"] += kept(["fragile/1"])

    def twice(history: History, log: Log) -> None:
        log["fragile.dead"] *= 2

    assert any(line.startswith("neither dead nor acknowledged: fragile/0") for line in found(vanish))
    assert any(line.startswith("dead and acknowledged: fragile/1") for line in found(both))
    assert "dead twice: fragile/0 is in fragile.dead 2 times" in found(twice)


def test_records_are_read_while_they_grow(tmp_path: Path) -> None:
    path = tmp_path / "client.jsonl"
    follower = Follower([path])
    follower.follow()
    recorder = Recorder(path)
    recorder.publishing("work", ["single/0", "single/1"])
    recorder.published("work", [("single/0", 0, 7, "ab")])
    recorder.note("granted", "default/work", "ordered", 0, 7, "single/0", 1)
    recorder.acking("default/work", "ordered", 0, [7])
    follower.follow()
    recorder.acked("default/work", "ordered", 0, [7])
    recorder.close()
    with path.open("ab") as file:
        file.write(b'[1,"cut')
    follower.follow()
    history = follower.history
    assert history.receipts == [Receipt("default/work", "single/0", 0, 7, "ab")]
    assert history.unsure == {"single/1"}
    assert [(grant.client, grant.settling) for grant in history.grants] == [
        ("client", ("default/work", "ordered", 0, 7))
    ]
    assert set(history.acked) == history.acking == {("default/work", "ordered", 0, 7)}
    assert follower.last_grant_ns["ordered"] == history.grants[0].time_ns


def test_how_long_a_subscription_was_silent_is_measured_from_when_the_node_was_back() -> None:
    grant = Grant(0, "consumer", "default/work", "ordered", 0, 0, "single/0", 1)
    history = History(grants=[grant._replace(time_ns=moment) for moment in (500, 2_000_000_000, 3_000_000_000)])
    assert flow_seconds(history, [1_000_000_000, 2_500_000_000]) == [1.0, 0.5]


def test_a_shape_without_promises_finds_nothing_but_losses() -> None:
    history, log = in_order()
    history.grants.clear()
    assert violations(history, log, replace(SHAPE, subscriptions=())) == []
