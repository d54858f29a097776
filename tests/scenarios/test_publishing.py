"""What is published arrives as it was given: every option, one message or many, bytes or Arrow."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import sealane
from sealane.message import SCHEMA
from tests.scenarios.broker import Broker, take, take_payloads

GIVEN = uuid.UUID("01890000-0000-7000-8000-00000000002a")


async def test_a_message_arrives_with_everything_it_was_given(lane: sealane.Lane) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    receipt = await lane.publish(
        "orders", b"hello", key=b"42", headers={"region": "eu", "é": "ü"}, priority=7, ttl=60, delay=0, id=GIVEN
    )
    [message] = await take(lane.consume("orders", "billing"), 1)

    assert (receipt.id, receipt.partition, receipt.offset) == (GIVEN, 0, 0)
    assert (message.id, message.payload, message.key) == (GIVEN, b"hello", b"42")
    assert message.headers == {"region": "eu", "é": "ü"}
    assert (message.priority, message.attempt) == (7, 1)
    assert (message.topic, message.partition, message.offset) == ("default/orders", 0, 0)
    assert before <= message.created <= datetime.now(UTC)


async def test_a_bare_message_has_the_defaults(lane: sealane.Lane) -> None:
    receipt = await lane.publish("orders", b"")
    [message] = await take(lane.consume("orders", "billing"), 1)

    assert (message.payload, message.key, message.headers, message.priority) == (b"", None, {}, 5)
    assert message.id == receipt.id
    assert message.id.version == 7


@pytest.mark.parametrize("given", [GIVEN, str(GIVEN), GIVEN.bytes])
async def test_an_id_may_be_given_in_any_form(lane: sealane.Lane, given) -> None:
    assert (await lane.publish("orders", b"", id=given)).id == GIVEN


async def test_a_message_does_not_show_its_payload_in_logs(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"secret", key=b"secret")
    [message] = await take(lane.consume("orders", "billing"), 1)
    assert "secret" not in repr(message)


async def test_concurrent_publishes_are_all_stored_in_the_order_of_their_calls(lane: sealane.Lane) -> None:
    receipts = await asyncio.gather(*(lane.publish("orders", b"%d" % index) for index in range(500)))

    assert [receipt.offset for receipt in receipts] == list(range(500))
    assert len({receipt.id for receipt in receipts}) == 500
    assert await take_payloads(lane.consume("orders", "billing"), 500) == [b"%d" % index for index in range(500)]


async def test_one_refused_message_does_not_take_those_published_beside_it_along(lane: sealane.Lane) -> None:
    outcomes = await asyncio.gather(
        lane.publish("orders", b"good"),
        lane.publish("orders", b"x" * (1024 * 1024 + 1)),
        lane.publish("orders", b"good too"),
        lane.publish("orders", b"", priority=11),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], sealane.LimitExceeded)
    assert isinstance(outcomes[3], sealane.InvalidMessage)
    assert sorted(await take_payloads(lane.consume("orders", "billing"), 2)) == [b"good", b"good too"]


async def test_publish_many_gives_a_receipt_for_each_payload(lane: sealane.Lane) -> None:
    payloads = [b"%d" % index for index in range(1_000)]
    receipts = await lane.publish_many("orders", payloads)

    assert [receipt.offset for receipt in receipts] == list(range(1_000))
    assert (len(receipts), receipts[7].offset, receipts[-1].offset) == (1_000, 7, 999)
    messages = await take(lane.consume("orders", "billing"), 1_000)
    assert [message.payload for message in messages] == payloads
    assert [message.id for message in messages] == [receipt.id for receipt in receipts]


@pytest.mark.parametrize("payloads", [(b"a", b"b"), iter([b"a", b"b"]), [b"a", b"b"]])
async def test_publish_many_takes_any_sequence(lane: sealane.Lane, payloads) -> None:
    if not isinstance(payloads, list | tuple):
        payloads = iter([b"a", b"b"])
    assert len(await lane.publish_many("orders", payloads)) == 2
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"a", b"b"]


async def test_publishing_nothing_is_nothing(lane: sealane.Lane) -> None:
    assert list(await lane.publish_many("orders", [])) == []
    assert list(await lane.publish_many("orders", SCHEMA.empty_table())) == []


async def test_more_than_a_batch_holds_is_published_as_several_in_order(lane: sealane.Lane) -> None:
    large = [bytes([index]) * 1_000_000 for index in range(20)]
    receipts = await lane.publish_many("orders", large)

    assert [receipt.offset for receipt in receipts] == list(range(20))
    assert await take_payloads(lane.consume("orders", "billing"), 20) == large


async def test_a_record_batch_needs_only_payloads(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", pa.record_batch({"payload": [b"a", b"b"]}))

    messages = await take(lane.consume("orders", "billing"), 2)
    assert [(each.payload, each.key, each.headers, each.priority) for each in messages] == [
        (b"a", None, {}, 5),
        (b"b", None, {}, 5),
    ]


async def test_a_table_keeps_the_columns_it_has(lane: sealane.Lane) -> None:
    table = pa.table(
        {
            "payload": pa.chunked_array([["text", "is"], ["encoded"]]),
            "key": [b"1", None, b"3"],
            "headers": pa.array([[("region", "eu")], None, []], pa.map_(pa.utf8(), pa.utf8())),
            "priority": [1, 5, 10],
            "id": pa.array([uuid.UUID(int=index).bytes for index in range(3)], pa.binary(16)),
        }
    )
    receipts = await lane.publish_many("orders", table)

    assert [receipt.id.int for receipt in receipts] == [0, 1, 2]
    messages = await take(lane.consume("orders", "billing"), 3)
    assert [(each.payload, each.key, each.headers, each.priority) for each in messages] == [
        (b"encoded", b"3", {}, 10),
        (b"is", None, {}, 5),
        (b"text", b"1", {"region": "eu"}, 1),
    ]


async def test_arrow_that_is_not_messages_is_refused_and_nothing_is_stored(lane: sealane.Lane) -> None:
    for wrong in (
        pa.table({"body": [b"a"]}),
        pa.table({"payload": [b"a"], "colour": ["blue"]}),
        pa.table({"payload": [b"a"], "priority": [11]}),
        pa.table({"payload": [b"a", None]}),
    ):
        with pytest.raises((sealane.InvalidBatch, sealane.InvalidMessage)):
            await lane.publish_many("orders", wrong)
    assert await lane.topics() == []


async def test_one_payload_is_not_a_sequence_of_them(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.InvalidArgument, match="one payload"):
        await lane.publish_many("orders", b"hello")


async def test_keys_fix_the_partition_and_receipts_name_it(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=4)
    table = pa.table(
        {"payload": [b"%d" % index for index in range(100)], "key": [b"%d" % (i % 10) for i in range(100)]}
    )
    receipts = list(await lane.publish_many("orders", table))

    homes = {index % 10: receipt.partition for index, receipt in enumerate(receipts)}
    assert len(set(homes.values())) > 1
    assert all(receipt.partition == homes[index % 10] for index, receipt in enumerate(receipts))
    assert (await lane.publish("orders", b"", key=b"7")).partition == homes[7]
    messages = await take(lane.consume("orders", "billing"), 101)
    found = {message.payload: (message.partition, message.offset) for message in messages}
    assert all(found[b"%d" % index] == (each.partition, each.offset) for index, each in enumerate(receipts))


async def test_messages_without_a_key_use_all_partitions(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)
    receipts = [await lane.publish("orders", b"") for _ in range(9)]
    assert {receipt.partition for receipt in receipts} == {0, 1, 2}


async def test_domains_do_not_share_topics(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"ours")
    await lane.publish("shop/orders", b"theirs")

    assert await take_payloads(lane.consume("default/orders", "s"), 1) == [b"ours"]
    assert await take_payloads(lane.consume("shop/orders", "s"), 1) == [b"theirs"]


async def test_what_was_acknowledged_is_there_after_a_restart(directory: Broker) -> None:
    receipt = await directory.lane.publish("orders", b"hello", key=b"42", headers={"region": "eu"}, priority=7)
    await directory.lane.publish_many("orders", [b"%d" % index for index in range(1_000)])

    lane = await directory.restart()

    first, *rest = await take(lane.consume("orders", "billing"), 1_001)
    assert (first.id, first.payload, first.key, first.headers) == (receipt.id, b"hello", b"42", {"region": "eu"})
    assert [message.payload for message in rest] == [b"%d" % index for index in range(1_000)]


async def test_a_deadline_that_has_passed_is_an_error_that_says_what_is_unknown(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.DeadlineExceeded, match="may still happen") as late:
        await lane.publish("orders", b"hello", timeout=0)
    assert isinstance(late.value, TimeoutError)


async def test_small_batches_that_are_published_together_each_get_their_own_receipts(lane: sealane.Lane) -> None:
    calls = [[b"%d.%d" % (call, place) for place in range(1 + call % 7)] for call in range(60)]
    async with asyncio.TaskGroup() as publishing:
        tasks = [publishing.create_task(lane.publish_many("orders", payloads)) for payloads in calls]
    offsets = {}
    async for message in lane.consume("orders", "billing"):
        offsets[message.payload] = (message.id, message.offset)
        await message.ack()
        if len(offsets) == sum(map(len, calls)):
            break
    for payloads, task in zip(calls, tasks, strict=True):
        assert [(receipt.id, receipt.offset) for receipt in task.result()] == [offsets[one] for one in payloads]
        first = task.result()[0].offset
        assert [receipt.offset for receipt in task.result()] == list(range(first, first + len(payloads)))


async def test_of_small_batches_that_are_published_together_only_those_at_fault_are_refused(lane: sealane.Lane) -> None:
    too_long = bytes(lane.outgoing.limits.payload_bytes_max + 1)
    calls: list[list[object]] = [[b"0"], [b"1", "text"], [b"2", b"3"], [b"4", too_long], [b"5"]]
    outcomes = await asyncio.gather(
        *(lane.publish_many("orders", payloads) for payloads in calls),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)] == [
        sealane.InvalidMessage,
        sealane.LimitExceeded,
    ]
    assert await take_payloads(lane.consume("orders", "billing"), 4) == [b"0", b"2", b"3", b"5"]
