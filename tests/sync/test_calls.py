"""Everything of a lane, without await."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import sealane
from tests.sync.waiting import described, eventually, take

AT_ONCE = sealane.Retry("fixed", 0.0)


def test_what_is_published_is_consumed_and_acknowledged(lane: sealane.SyncLane) -> None:
    receipt = lane.publish("orders", b"hello", key=b"42", headers={"region": "eu"}, priority=7, ttl=60)
    for message in lane.consume("orders", subscription="billing"):
        assert (message.payload, message.key, message.headers) == (b"hello", b"42", {"region": "eu"})
        assert (message.id, message.partition, message.offset) == (receipt.id, receipt.partition, receipt.offset)
        assert (message.priority, message.attempt, message.topic) == (7, 1, "default/orders")
        message.ack(confirm=True)
        break
    assert described(lane, "orders", "billing").depth == 0


def test_many_are_published_from_bytes_and_from_tables(lane: sealane.SyncLane) -> None:
    assert len(lane.publish_many("orders", [b"1", b"2"])) == 2
    assert len(lane.publish_many("orders", pa.table({"payload": pa.array([b"3", b"4"], pa.binary())}))) == 2
    messages = take(lane.consume("orders", "billing"), 4)
    assert [message.payload for message in messages] == [b"1", b"2", b"3", b"4"]


def test_acks_go_out_by_themselves_within_moments(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"x"] * 10)
    messages = take(lane.consume("orders", "billing"), 10)
    for message in messages:
        message.ack()
    eventually(lambda: described(lane, "orders", "billing").depth == 0)


def test_a_failed_message_comes_again(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"hard")
    attempts = []
    for message in lane.consume("orders", "billing", retry=AT_ONCE):
        attempts.append(message.attempt)
        if len(attempts) == 3:
            message.ack(confirm=True)
            break
        message.extend(60)
        message.nack(reason="not yet")
    assert attempts == [1, 2, 3]


def test_a_loop_that_is_left_gives_back_what_it_has_not_handed_out(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"%d" % number for number in range(2_000)])
    first = take(lane.consume("orders", "billing"), 3)
    others = take(lane.consume("orders", "billing"), 1_997)
    assert [int(message.payload) for message in first + others] == list(range(2_000))
    assert {message.attempt for message in others} == {1}
    for message in first:
        message.ack(confirm=True)


@pytest.mark.parametrize("end", ["break", "error", "close", "with"])
def test_every_way_to_leave_the_loop_ends_the_consumer(lane: sealane.SyncLane, end: str) -> None:
    lane.publish_many("orders", [b"x"] * 600)

    def handle() -> None:
        consumption = lane.consume("orders", "billing")
        for message in consumption:
            message.ack()
            if end == "error":
                raise ValueError("the handler failed")
            break

    if end == "error":
        with pytest.raises(ValueError, match="handler"):
            handle()
    elif end == "close":
        loop = iter(lane.consume("orders", "billing"))
        next(loop).ack()
        loop.close()
        with pytest.raises(sealane.Closed):
            next(loop)
    elif end == "with":
        with lane.consume("orders", "billing") as messages:
            next(iter(messages)).ack()
    else:
        handle()
    eventually(lambda: described(lane, "orders", "billing").consumers == 0)
    eventually(lambda: described(lane, "orders", "billing").depth == 599)
    assert described(lane, "orders", "billing").leased == 0


def test_what_waits_too_long_in_the_callers_hands_goes_back(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"%d" % number for number in range(10)])
    slow = iter(lane.consume("orders", "billing", lease_seconds=1.0, prefetch=10))
    held = next(slow)
    eventually(lambda: described(lane, "orders", "billing").leased <= 1)
    others = take(lane.consume("orders", "billing"), 9)
    assert [int(message.payload) for message in others] == list(range(1, 10))
    assert {message.attempt for message in others} == {1}
    assert int(held.payload) == 0


def test_automatic_acks_settle_each_message_before_it_is_handed_out(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"%d" % number for number in range(20)])
    taken = take(lane.consume("orders", "billing", auto_ack=True), 5)
    assert [int(message.payload) for message in taken] == [0, 1, 2, 3, 4]
    eventually(lambda: described(lane, "orders", "billing").depth == 15)


def test_batches_come_as_they_were_stored(lane: sealane.SyncLane) -> None:
    for start in range(0, 300, 100):
        lane.publish_many("orders", [b"%d" % number for number in range(start, start + 100)])
    received: list[bytes] = []
    for batch in lane.consume_batches("orders", subscription="etl", messages_max=70):
        assert len(batch) <= 70
        assert batch.to_arrow().num_rows == len(batch) == len(batch.offsets()) == len(batch.payloads())
        received += batch.payloads()
        batch.ack(confirm=len(received) == 300)
        if len(received) == 300:
            break
    assert received == [b"%d" % number for number in range(300)]
    assert described(lane, "orders", "etl").depth == 0


def test_messages_of_a_batch_are_answered_one_by_one(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"good", b"bad"])
    [batch] = take(lane.consume_batches("orders", "etl", retry=AT_ONCE), 1)
    good, bad = batch
    good.ack(confirm=True)
    bad.nack(confirm=True)
    [again] = take(lane.consume_batches("orders", "etl"), 1)
    assert again.payloads() == [b"bad"]


def test_batches_can_be_acknowledged_automatically(lane: sealane.SyncLane) -> None:
    lane.publish_many("orders", [b"1", b"2"])
    take(lane.consume_batches("orders", "etl", auto_ack=True), 1)
    assert described(lane, "orders", "etl").depth == 0


def test_a_producer_is_durable_when_its_block_ends(lane: sealane.SyncLane) -> None:
    with lane.producer("orders") as producer:
        for number in range(12_000):
            producer.send(b"%d" % number)
        producer.flush()
        assert lane.describe_topic("orders").partitions[0].end == 12_000
        producer.send(b"12000", key=b"k", headers={"a": "b"})
    messages = take(lane.consume("orders", "billing"), 12_001)
    assert [int(message.payload) for message in messages] == list(range(12_001))
    with pytest.raises(sealane.Closed):
        producer.send(b"late")


def test_a_producer_sends_by_itself_what_nobody_flushes(lane: sealane.SyncLane) -> None:
    lane.create_topic("orders")
    with lane.producer("orders") as producer:
        producer.send(b"alone")
        eventually(lambda: lane.describe_topic("orders").partitions[0].end == 1)


def test_a_producer_whose_block_fails_does_not_flush(lane: sealane.SyncLane) -> None:
    with pytest.raises(ValueError, match="mine"), lane.producer("orders") as producer:
        producer.send(b"1")
        raise ValueError("mine")
    with pytest.raises(sealane.Closed):
        producer.flush()


def test_what_a_producer_could_not_store_is_raised_by_it(lane: sealane.SyncLane) -> None:
    lane.create_topic("orders", messages_max=10)
    with lane.consume("orders", "billing"):
        pass
    with pytest.raises(sealane.QueueFull), lane.producer("orders") as producer:
        for _ in range(20_000):
            producer.send(b"x")
    with pytest.raises(sealane.InvalidMessage), lane.producer("orders") as producer:
        producer.send("text")  # type: ignore[arg-type]


def test_transactions_are_visible_together_and_once(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"42")
    for message in lane.consume("orders", "billing"):
        with lane.transaction("order-42") as transaction:
            transaction.publish("invoices", b"invoice", key=b"42")
            transaction.publish_many("audit", [b"a", b"b"])
            transaction.ack(message)
        assert not transaction.replayed
        break
    with lane.transaction("order-42") as again:
        again.publish("invoices", b"invoice")
    assert again.replayed
    assert lane.describe_topic("invoices").partitions[0].end == 1
    assert described(lane, "orders", "billing").depth == 0
    with pytest.raises(ValueError, match="mine"), lane.transaction("other") as failed:
        failed.publish("invoices", b"never")
        raise ValueError("mine")
    assert lane.describe_topic("invoices").partitions[0].end == 1


def test_exchanges_topics_and_positions_are_managed(lane: sealane.SyncLane) -> None:
    lane.create_topic("eu", partitions=2)
    lane.configure_topic("eu", retention_seconds=60.0)
    lane.declare_exchange("regions", "topic")
    lane.bind("regions", "eu", "order.eu.*")
    assert set(lane.publish_to("regions", "order.eu.de", b"hello")) == {"default/eu"}
    with pytest.raises(sealane.Unroutable):
        lane.publish_to("regions", "order.us", b"hello")
    lane.unbind("regions", "eu", "order.eu.*")
    assert list(lane.exchanges()) == ["default/regions"]
    assert lane.topics() == ["default/eu"]
    take(lane.consume("eu", "billing", auto_ack=True), 1)
    lane.seek("eu", "billing", "earliest")
    take(lane.consume("eu", "billing", auto_ack=True), 1)
    lane.unsubscribe("eu", "billing")
    lane.delete_topic("eu")
    assert lane.topics() == []


def test_dead_letters_are_sent_back(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"hard")
    for message in lane.consume("orders", "billing", retry=sealane.Retry("fixed", 0.0, attempts_max=1)):
        message.nack(confirm=True)
        break
    eventually(lambda: "default/orders.billing.dead" in lane.topics())
    told: list[int] = []
    eventually(lambda: lane.redrive("orders", "billing", progress=told.append).messages == 1)
    assert told[-1] == 1
    [message] = take(lane.consume("orders", "billing"), 1)
    assert message.payload == b"hard"


def test_errors_are_those_of_the_asynchronous_client(lane: sealane.SyncLane) -> None:
    with pytest.raises(sealane.TopicNotFound):
        lane.describe_topic("nowhere")
    with pytest.raises(sealane.InvalidName):
        lane.publish("no/such/name", b"")
    with pytest.raises(sealane.InvalidArgument):
        lane.consume("orders", "billing", prefetch=0)
    assert lane.publish("orders", b"x", id=uuid.UUID(int=7)) == lane.publish("orders", b"x", id=uuid.UUID(int=7))


def test_a_deleted_subscription_ends_the_loop_with_an_error(lane: sealane.SyncLane) -> None:
    lane.publish("orders", b"1")
    with pytest.raises(sealane.NotFound):
        for message in lane.consume("orders", "billing"):
            message.ack(confirm=True)
            lane.unsubscribe("orders", "billing")
