"""Sealed end to end, without `await`."""

from __future__ import annotations

import pytest

import sealane
from tests.sync.waiting import described, eventually, take

KEY, STRANGER = sealane.PrivateKey.generate(), sealane.PrivateKey.generate()


def test_it_is_sealed_by_every_way_to_publish(lane: sealane.SyncLane) -> None:
    lane.register_key(KEY.public, "billing")
    assert lane.public_keys("billing") == [KEY.public]
    lane.publish("orders", b"one", seal_for="billing")
    lane.publish_many("orders", [b"two", b"three"], seal_for=KEY.public)
    with lane.producer("orders", seal_for={"billing": KEY.public.fingerprint}) as producer:
        producer.send(b"four")
    with lane.transaction("t") as transaction:
        transaction.publish("orders", b"five", seal_for=["billing"])
    assert all(message.sealed for message in take(lane.consume("orders", "as-it-is"), 5))
    messages = take(lane.consume("orders", "one-by-one", keys=KEY), 5)
    assert [message.payload for message in messages] == [b"one", b"two", b"three", b"four", b"five"]
    [batch] = take(lane.consume_batches("orders", "batches", keys=[KEY]), 1)
    assert batch.payloads()[0] == b"one"


def test_what_cannot_be_opened_says_so_where_it_is_read(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"for another", seal_for=STRANGER.public)
    lane.publish("orders", b"for us", seal_for=KEY.public)
    first, second = take(lane.consume("orders", "s", keys=KEY), 2)
    assert second.payload == b"for us"
    with pytest.raises(sealane.CannotOpen) as refusal:
        _ = first.payload
    assert refusal.value.ids == (first.id,)
    first.nack(reason=refusal.value.reason, delay=60, confirm=True)

    [batch] = take(lane.consume_batches("orders", "batches", keys=KEY), 1)
    with pytest.raises(sealane.CannotOpen):
        batch.payloads()
    assert [message.sealed for message in batch] == [True, False]
    assert batch.openable().payloads() == [b"for us"]
    batch.openable().ack(confirm=True)
    batch.unopened().nack(delay=60, confirm=True)


def test_automatic_acks_lose_nothing_that_cannot_be_opened(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"for another", seal_for=STRANGER.public)
    lane.publish("orders", b"for us", seal_for=KEY.public)
    slow = sealane.Retry("fixed", 60.0)
    [message] = take(lane.consume("orders", "s", keys=KEY, auto_ack=True, retry=slow), 1)
    assert message.payload == b"for us"
    eventually(lambda: described(lane, "orders", "s").depth == 1)
