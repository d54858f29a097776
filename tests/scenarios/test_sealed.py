"""Sealed end to end: what was published for recipients is opened by them, and by nobody else."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

import sealane
from sealane.message.schema import SCHEMA
from sealane.node import NodeSettings
from sealane.security.envelopes import RECIPIENTS_MAX
from sealane.security.envelopes.session import MESSAGE_BYTES_ADDED
from tests.scenarios.broker import AT_ONCE, Broker, all_settled, described, eventually, take, take_payloads

BILLING, AUDIT, STRANGER = (sealane.PrivateKey.generate() for _ in range(3))
SECRET = b"4111 1111 1111 1111"


async def registered(lane: sealane.Lane) -> None:
    await lane.register_key(BILLING.public, "billing")
    await lane.register_key(AUDIT.public, "audit")


# --- publishing and consuming -----------------------------------------------------------------------------------------


async def test_a_message_is_sealed_for_its_recipients(lane: sealane.Lane) -> None:
    await registered(lane)
    await lane.publish("orders", SECRET, key=b"42", headers={"region": "eu"}, seal_for=["billing", "audit"])
    for name, key in (("billing", BILLING), ("audit", AUDIT)):
        [message] = await take(lane.consume("orders", name, keys=key), 1)
        assert (message.payload, message.key, message.headers) == (SECRET, b"42", {"region": "eu"})
        assert (message.sealed, message.envelope) == (False, None)


async def test_without_keys_a_message_comes_as_it_is_stored(lane: sealane.Lane) -> None:
    await lane.publish("orders", SECRET, seal_for=BILLING.public)
    [message] = await take(lane.consume("orders", "copy"), 1)
    assert message.sealed
    assert message.envelope is not None
    assert SECRET not in message.payload
    assert len(message.payload) == len(SECRET) + MESSAGE_BYTES_ADDED


async def test_many_messages_at_once_and_in_batches(lane: sealane.Lane) -> None:
    payloads = [b"%d" % number for number in range(3_000)]
    receipts = await lane.publish_many("orders", payloads, seal_for=BILLING.public)
    assert [receipt.offset for receipt in receipts] == list(range(3_000))
    got: list[bytes] = []
    async with asyncio.timeout(20):
        async for batch in lane.consume_batches("orders", "etl", messages_max=700, keys=[STRANGER, BILLING]):
            assert batch.to_arrow().schema == SCHEMA
            assert batch.to_arrow().column("envelope").null_count == len(batch)
            got += batch.payloads()
            await batch.ack()
            if len(got) == 3_000:
                break
    assert got == payloads
    await all_settled(lane, "orders", "etl")


async def test_an_arrow_table_is_sealed_too(lane: sealane.Lane) -> None:
    table = pa.table({"payload": [b"a", b"b"], "key": [b"k", None]})
    await lane.publish_many("orders", table, seal_for=BILLING.public)
    [batch] = await take(lane.consume_batches("orders", "s", keys=BILLING), 1)
    assert batch.payloads() == [b"a", b"b"]
    assert batch.to_arrow().column("key").to_pylist() == [b"k", None]


async def test_a_producer_seals(lane: sealane.Lane) -> None:
    await registered(lane)
    async with lane.producer("orders", seal_for="billing") as producer:
        for number in range(7_000):
            await producer.send(b"%d" % number)
        await producer.send(b"last", key=b"k")
    got = await take_payloads(lane.consume("orders", "s", keys=BILLING, prefetch=10_000), 7_001)
    assert got == [*(b"%d" % number for number in range(7_000)), b"last"]


async def test_a_producer_fails_for_a_recipient_that_nobody_knows(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.RecipientNotFound, match="recipient 'nobody' does not exist"):
        async with lane.producer("orders", seal_for="nobody") as producer:
            await producer.send(SECRET)


async def test_a_transaction_seals(lane: sealane.Lane) -> None:
    await registered(lane)
    async with lane.transaction("t1") as transaction:
        await transaction.publish("orders", SECRET, seal_for="billing")
        await transaction.publish_many("orders", [b"1", b"2"], seal_for="billing")
    assert await take_payloads(lane.consume("orders", "s", keys=BILLING), 3) == [SECRET, b"1", b"2"]


async def test_an_exchange_gets_it_sealed(lane: sealane.Lane) -> None:
    await lane.create_topic("europe")
    await lane.declare_exchange("sales", "fanout")
    await lane.bind("sales", "europe")
    await lane.publish_to("sales", "", SECRET, seal_for=BILLING.public)
    assert await take_payloads(lane.consume("europe", "s", keys=BILLING), 1) == [SECRET]


async def test_messages_for_different_recipients_do_not_share_an_envelope(lane: sealane.Lane) -> None:
    await registered(lane)
    whom = ["billing", "audit", None] * 50
    await asyncio.gather(*(lane.publish("orders", b"%d" % n, seal_for=name) for n, name in enumerate(whom)))
    found = await take(lane.consume("orders", "s", keys=BILLING), 150)
    assert sum(message.sealed for message in found) == 50
    readable = {int(message.payload) for message in found if not message.sealed}
    assert readable == {n for n, name in enumerate(whom) if name != "audit"}


async def test_a_given_id_is_bound_and_repeats_are_stored_once(lane: sealane.Lane) -> None:
    id = "0198c5a1-0000-7000-8000-000000000001"
    first = await lane.publish("orders", SECRET, id=id, seal_for=BILLING.public)
    again = await lane.publish("orders", SECRET, id=id, seal_for=BILLING.public)
    assert again.offset == first.offset
    assert await take_payloads(lane.consume("orders", "s", keys=BILLING), 1) == [SECRET]


async def test_a_dead_letter_opens_in_its_topic_and_after_its_way_back(lane: sealane.Lane) -> None:
    await lane.publish("orders", SECRET, seal_for=BILLING.public)
    once = sealane.Retry("fixed", 0.0, attempts_max=1)
    [message] = await take(lane.consume("orders", "s", keys=BILLING, retry=once), 1)
    await message.nack(reason="no", confirm=True)
    assert await take_payloads(lane.consume("orders.s.dead", "look", keys=BILLING), 1) == [SECRET]
    await lane.redrive("orders", "s")
    assert await take_payloads(lane.consume("orders", "s", keys=BILLING), 1) == [SECRET]


async def test_what_came_sealed_can_be_published_as_it_is(lane: sealane.Lane) -> None:
    await lane.publish("orders", SECRET, seal_for=BILLING.public)
    [batch] = await take(lane.consume_batches("orders", "copy"), 1)
    await lane.publish_many("copies", batch.to_arrow())
    assert await take_payloads(lane.consume("copies", "s", keys=BILLING), 1) == [SECRET]
    with pytest.raises(sealane.InvalidMessage, match="sealed; publish them without"):
        await lane.publish_many("copies", batch.to_arrow(), seal_for=BILLING.public)


async def test_it_survives_a_restart(directory: Broker) -> None:
    await registered(directory.lane)
    await directory.lane.publish("orders", SECRET, seal_for="billing")
    lane = await directory.restart()
    assert await lane.public_keys("billing") == [BILLING.public]
    assert await take_payloads(lane.consume("orders", "s", keys=BILLING), 1) == [SECRET]


# --- what cannot be opened --------------------------------------------------------------------------------------------


async def test_the_wrong_key_opens_nothing_and_the_message_can_be_nacked_with_the_reason(lane: sealane.Lane) -> None:
    receipt = await lane.publish("orders", SECRET, headers={"a": "b"}, seal_for=BILLING.public)
    once = sealane.Retry("fixed", 0.0, attempts_max=1)
    [message] = await take(lane.consume("orders", "s", keys=STRANGER, retry=once), 1)
    assert message.sealed
    assert message.headers == {"a": "b"}
    with pytest.raises(sealane.CannotOpen, match="was not sealed for any of the keys") as refusal:
        _ = message.payload
    assert refusal.value.ids == (receipt.id,)
    assert "Unopened" in repr(message)
    await message.nack(reason=refusal.value.reason, confirm=True)
    [dead] = await take(lane.consume("orders.s.dead", "look", keys=BILLING), 1)
    assert dead.payload == SECRET
    assert "was not sealed for any of the keys" in dead.headers["sealane-dead-reason"]


async def test_a_batch_goes_on_with_what_can_be_opened(lane: sealane.Lane) -> None:
    whom = [BILLING.public, STRANGER.public, None, BILLING.public]
    ids = [(await lane.publish("orders", b"%d" % n, seal_for=key)).id for n, key in enumerate(whom)]
    [batch] = await take(lane.consume_batches("orders", "s", keys=BILLING), 1)
    for read in (batch.payloads, batch.to_arrow):
        with pytest.raises(sealane.CannotOpen) as refusal:
            read()
        assert refusal.value.ids == (ids[1],)
    opened, unopened = batch.openable(), batch.unopened()
    assert opened.payloads() == [b"0", b"2", b"3"]
    assert opened.offsets() == [0, 2, 3]
    assert (len(unopened), unopened.offsets()) == (1, [1])
    assert [message.sealed for message in batch] == [False, True, False, False]
    with pytest.raises(sealane.CannotOpen):
        _ = list(batch)[1].payload
    await opened.ack(confirm=True)
    await unopened.nack(delay=60, confirm=True)
    assert (await described(lane, "orders", "s")).depth == 1


async def test_a_batch_that_opens_wholly_has_nothing_unopened(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"], seal_for=BILLING.public)
    [batch] = await take(lane.consume_batches("orders", "s", keys=BILLING), 1)
    assert batch.openable().payloads() == batch.payloads() == [b"a", b"b"]
    none = batch.unopened()
    assert (len(none), none.payloads(), none.offsets()) == (0, [], [])
    assert "0 messages" in repr(none)
    await none.nack(confirm=True)
    await none.ack(confirm=True)
    await batch.ack(confirm=True)
    await all_settled(lane, "orders", "s")


async def test_what_is_not_sealed_is_refused_where_that_is_required(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"plain")
    await lane.publish("orders", SECRET, seal_for=BILLING.public)
    first, second = await take(lane.consume("orders", "s", keys=BILLING, require_sealed=True), 2)
    assert second.payload == SECRET
    assert not first.sealed
    with pytest.raises(sealane.CannotOpen, match="it is not sealed"):
        _ = first.payload
    with pytest.raises(sealane.InvalidArgument, match="needs `keys`"):
        lane.consume("orders", "s", require_sealed=True)


async def test_automatic_acks_lose_nothing_that_cannot_be_opened(lane: sealane.Lane) -> None:
    for key, payload in ((STRANGER, b"for another"), (BILLING, SECRET)):
        await lane.publish("orders", payload, seal_for=key.public)
    slow = sealane.Retry("fixed", 60.0)
    [message] = await take(lane.consume("orders", "one", keys=BILLING, auto_ack=True, retry=slow), 1)
    [batch] = await take(lane.consume_batches("orders", "many", keys=BILLING, auto_ack=True, retry=slow), 1)
    assert (message.payload, batch.payloads()) == (SECRET, [SECRET])
    for subscription in ("one", "many"):

        async def waits_for_its_reader(subscription: str = subscription) -> bool:
            return (await described(lane, "orders", subscription)).depth == 1

        await eventually(waits_for_its_reader)


async def test_a_message_that_comes_again_opens_again(lane: sealane.Lane) -> None:
    await lane.publish("orders", SECRET, seal_for=BILLING.public)
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "s", keys=BILLING, retry=AT_ONCE):
            assert message.payload == SECRET
            if message.attempt == 3:
                break
            await message.nack()


# --- limits -----------------------------------------------------------------------------------------------------------


async def test_a_payload_that_is_too_long_once_it_is_sealed_is_refused(lane: sealane.Lane) -> None:
    most = 1024 * 1024 - MESSAGE_BYTES_ADDED
    await lane.publish("orders", bytes(most), seal_for=BILLING.public)
    for publish in (lane.publish("orders", bytes(most + 1), seal_for=BILLING.public),
                    lane.publish_many("orders", [bytes(most + 1)], seal_for=BILLING.public)):  # fmt: skip
        with pytest.raises(sealane.LimitExceeded, match="sealed payload is 1,048,577 bytes"):
            await publish


async def test_too_many_recipients_are_refused(lane: sealane.Lane) -> None:
    keys = [sealane.PrivateKey.generate() for _ in range(RECIPIENTS_MAX + 1)]
    await lane.publish("orders", SECRET, seal_for=[key.public for key in keys[1:]])
    assert await take_payloads(lane.consume("orders", "s", keys=keys[-1]), 1) == [SECRET]
    with pytest.raises(sealane.InvalidArgument, match="at most 32"):
        await lane.publish("orders", SECRET, seal_for=[key.public for key in keys])


async def test_large_envelopes_make_smaller_batches(broker: Broker) -> None:
    from sealane.message import Limits

    lane = await broker.restart(NodeSettings(limits=Limits(batch_bytes_max=100_000)))
    keys = [sealane.PrivateKey.generate() for _ in range(RECIPIENTS_MAX)]
    whom = [key.public for key in keys]
    payloads = [b"%d" % number for number in range(200)]
    await lane.publish_many("many", payloads, seal_for=whom)
    await lane.publish_many("many", pa.table({"payload": payloads}), seal_for=whom)
    await asyncio.gather(*(lane.publish("many", payload, seal_for=whom) for payload in payloads))
    async with lane.producer("many", seal_for=whom) as producer:
        for payload in payloads:
            await producer.send(payload)
    got = await take_payloads(lane.consume("many", "s", keys=keys[7]), 800)
    assert [got[:200], got[200:400], sorted(got[400:600]), got[600:]] == [
        payloads,
        payloads,
        sorted(payloads),
        payloads,
    ]


@pytest.mark.parametrize("wrong", [[], {}, 7, [7], {"billing": 7}, [b"billing"]])
async def test_what_cannot_be_a_recipient_is_refused(lane: sealane.Lane, wrong: object) -> None:
    with pytest.raises((sealane.InvalidArgument, TypeError)):
        await lane.publish("orders", SECRET, seal_for=wrong)  # type: ignore[arg-type]
    assert await lane.topics() == []
