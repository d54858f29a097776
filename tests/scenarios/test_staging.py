"""Staging: what several writers stage is published together, once, and nobody sees anything of it before."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.message import BatchMeta, Limits
from sealane.node import NodeSettings, StagingSettings, TopicSettings
from tests.scenarios.broker import DEADLINE_SECONDS, Broker, described, eventually, take, take_payloads
from tests.staged import batch_of, numbered, part_of, stage_part, stored

SMALL_STEPS = NodeSettings(staging=StagingSettings(step_bytes=1_000))
"""A handful of messages is more than one commit takes."""


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


async def stage_many(lane: sealane.Lane, topic: str = "orders", parts: int = 3) -> list[tuple[bytes, int]]:
    """Parts of ten batches of ten messages, numbered one after another."""
    return [
        await stage_part(
            lane,
            topic,
            f"part {part}",
            [numbers(100 * part + 10 * number, 100 * part + 10 * number + 10) for number in range(10)],
        )
        for part in range(parts)
    ]


async def test_parts_are_published_together_in_their_order(lane: sealane.Lane) -> None:
    first = await stage_part(lane, "orders", "first", [[b"a", b"b"], [b"c"]])
    second = await stage_part(lane, "orders", "second", [[b"d"]])
    assert await lane.topics() == []

    assert await lane.publish_staged("job", [second, first]) is True

    assert await take_payloads(lane.consume("orders", "s"), 4) == [b"d", b"a", b"b", b"c"]


async def test_messages_keep_all_that_was_said_of_them(lane: sealane.Lane) -> None:
    batch = batch_of(lane, "p", 0, [b"order"], key=b"42", headers={"region": "eu"}, priority=7)
    await lane.stage("orders", batch)
    await lane.publish_staged("job", [(part_of("p"), 1)])
    [order] = await take(lane.consume("orders", "s"), 1)
    assert (order.payload, order.key, order.headers, order.priority) == (b"order", b"42", {"region": "eu"}, 7)


async def test_a_repeated_publish_changes_nothing_and_drops_its_parts(lane: sealane.Lane) -> None:
    assert await lane.publish_staged("job", [await stage_part(lane, "orders", "first", [[b"a"]])]) is True
    again = await stage_part(lane, "orders", "second", [[b"a"]])
    assert await lane.publish_staged("job", [again]) is False
    assert await stored(lane, "orders") == [b"a"]
    with pytest.raises(sealane.StagedPartLost):
        await lane.publish_staged("another job", [again])


async def test_a_batch_that_is_sent_again_is_kept_once(lane: sealane.Lane) -> None:
    batch = batch_of(lane, "p", 0, [b"a", b"b"])
    for _ in range(3):
        await lane.stage("orders", batch)
    await lane.stage("orders", batch_of(lane, "p", 1, [b"c"]))
    await lane.stage("orders", batch)
    assert await lane.publish_staged("job", [(part_of("p"), 2)]) is True
    assert await stored(lane, "orders") == [b"a", b"b", b"c"]


async def test_one_transaction_spans_topics_domains_and_partitions(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=3)
    for index in range(12):
        batch = batch_of(lane, "p", index, [b"%d" % index], key=b"%d" % index)
        await lane.stage(("orders", "shop/invoices", "sales/letters")[index % 3], batch)
    assert await lane.publish_staged("job", [(part_of("p"), 12)]) is True
    assert sorted(await stored(lane, "orders"), key=int) == [b"0", b"3", b"6", b"9"]
    assert await stored(lane, "shop/invoices") == [b"1", b"4", b"7", b"10"]
    assert await stored(lane, "sales/letters") == [b"2", b"5", b"8", b"11"]


async def test_messages_with_a_key_go_where_a_publish_would_send_them(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=4)
    keys = [b"%d" % number for number in range(20)]
    places = {key: (await lane.publish("orders", b"direct", key=key)).partition for key in keys}
    for number, key in enumerate(keys):
        await lane.stage("orders", batch_of(lane, "p", number, [b"staged"], key=key))
    await lane.publish_staged("job", [(part_of("p"), len(keys))])
    messages = await take(lane.consume("orders", "s"), 40)
    assert {(message.key, message.partition) for message in messages} == set(places.items())


async def test_ids_that_were_given_are_stored_once(lane: sealane.Lane) -> None:
    given = "01890000-0000-7000-8000-00000000002a"
    await lane.publish("orders", b"first", id=given)
    await lane.stage("orders", batch_of(lane, "p", 0, [b"second"], id=given))
    await lane.stage("orders", batch_of(lane, "p", 1, [b"third"]))
    assert await lane.publish_staged("job", [(part_of("p"), 2)]) is True
    assert await stored(lane, "orders") == [b"first", b"third"]
    await lane.stage("orders", batch_of(lane, "q", 0, [b"fourth"], id=given))  # Staging itself knows no repeats of ids.
    await lane.publish_staged("next job", [(part_of("q"), 1)])
    assert await stored(lane, "orders") == [b"first", b"third"]


async def test_a_publish_of_nothing_is_done_once_too(lane: sealane.Lane) -> None:
    assert await lane.publish_staged("job", []) is True
    assert await lane.publish_staged("job", []) is False
    assert await lane.publish_staged("next job", [(part_of("empty"), 0)]) is True


# --- epochs -----------------------------------------------------------------------------------------------------------


async def test_a_writers_epochs_count_up(lane: sealane.Lane) -> None:
    for attempt, epoch in enumerate((0, 1, 1, 0, 5, 4)):
        part = await stage_part(lane, "orders", f"attempt {attempt}", [[b"%d" % epoch]])
        assert await lane.publish_staged("query", [part], epoch=epoch) is (attempt in (0, 1, 4))
    assert await stored(lane, "orders") == [b"0", b"1", b"5"]
    part = await stage_part(lane, "orders", "another's", [[b"another"]])
    assert await lane.publish_staged("another query", [part], epoch=0) is True


async def test_epochs_are_remembered_across_restarts(directory: Broker) -> None:
    part = await stage_part(directory.lane, "orders", "first", [[b"a"]])
    assert await directory.lane.publish_staged("query", [part], epoch=7) is True
    lane = await directory.restart()
    part = await stage_part(lane, "orders", "second", [[b"a"]])
    assert await lane.publish_staged("query", [part], epoch=7) is False
    assert await lane.publish_staged("query", [await stage_part(lane, "orders", "third", [[b"b"]])], epoch=8) is True
    assert await stored(lane, "orders") == [b"a", b"b"]


async def test_epochs_and_transactions_are_told_apart(lane: sealane.Lane) -> None:
    part = await stage_part(lane, "orders", "first", [[b"a"]])
    assert await lane.publish_staged("query", [part], epoch=3) is True
    part = await stage_part(lane, "orders", "second", [[b"b"]])
    assert await lane.publish_staged("query", [part]) is True


# --- with other transactions ------------------------------------------------------------------------------------------


async def test_a_transaction_and_a_publish_of_parts_share_their_ids(lane: sealane.Lane) -> None:
    part = await stage_part(lane, "orders", "p", [[b"staged"]])
    assert await lane.publish_staged("order-42", [part]) is True
    async with lane.transaction("order-42") as transaction:
        await transaction.publish("orders", b"direct")
    assert transaction.replayed
    async with lane.transaction("order-43") as transaction:
        await transaction.publish("orders", b"direct")
    part = await stage_part(lane, "orders", "q", [[b"staged"]])
    assert await lane.publish_staged("order-43", [part]) is False
    assert await stored(lane, "orders") == [b"staged", b"direct"]


async def test_of_many_at_the_same_time_one_takes_effect(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    parts = await stage_many(lane)

    async def transact() -> bool:
        async with lane.transaction("job") as transaction:
            await transaction.publish("orders", b"direct")
        return not transaction.replayed

    outcomes = await asyncio.gather(*(lane.publish_staged("job", parts) for _ in range(5)), transact())
    assert outcomes == [True, False, False, False, False, False]
    assert await stored(lane, "orders") == numbers(0, 300)


async def test_a_part_is_published_under_one_name(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    parts = await stage_many(lane)
    names = ("one", "two", "three")
    outcomes = await asyncio.gather(*(lane.publish_staged(name, parts) for name in names), return_exceptions=True)
    assert outcomes.count(True) == 1
    assert all(
        isinstance(each, sealane.InvalidArgument | sealane.StagedPartLost) for each in outcomes if each is not True
    )
    assert await stored(lane, "orders") == numbers(0, 300)


async def test_staging_goes_on_while_other_parts_are_published(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    parts = await stage_many(lane)
    published, later = await asyncio.gather(
        lane.publish_staged("job", parts),
        stage_part(lane, "orders", "later", [numbers(300 + 10 * n, 310 + 10 * n) for n in range(10)]),
    )
    assert published is True
    assert await lane.publish_staged("next job", [later]) is True
    assert await stored(lane, "orders") == numbers(0, 400)


# --- more than one commit takes ---------------------------------------------------------------------------------------


async def test_a_large_publish_comes_step_by_step_and_whole(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    await lane.create_topic("invoices", partitions=3)
    parts = await stage_many(lane)
    for number in range(50):
        await lane.stage("invoices", batch_of(lane, "invoices", number, [b"%d" % number], key=b"%d" % (number % 7)))
    parts.append((part_of("invoices"), 50))
    assert await lane.publish_staged("job", parts) is True
    assert await stored(lane, "orders") == numbers(0, 300)
    assert sorted(await stored(lane, "invoices"), key=int) == numbers(0, 50)
    assert await lane.publish_staged("job", parts) is False


async def test_a_stored_batch_stays_within_the_limits_however_much_is_published_at_once(broker: Broker) -> None:
    limits = Limits(batch_bytes_max=20_000, batch_messages_max=40)
    lane = await broker.restart(NodeSettings(limits=limits))
    for number in range(9):
        await lane.stage("orders", batch_of(lane, "p", number, [b"%d" % number * 400] * 30))
    assert await lane.publish_staged("job", [(part_of("p"), 9)]) is True
    at, sizes = 0, []
    while read := await lane.browse("orders", 0, at):
        sizes += [(len(each.batch), each.batch.nbytes) for each in read]
        assert read[-1].stop > at
        at = read[-1].stop
    assert sum(count for count, _ in sizes) == 270
    assert max(count for count, _ in sizes) <= 40
    assert max(nbytes for _, nbytes in sizes) <= 20_000


async def test_given_ids_are_stored_once_over_steps(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    for number in range(40):
        identity = f"01890000-0000-7000-8000-0000000000{number % 20:02d}"
        await lane.stage("orders", batch_of(lane, "p", number, [b"%d" % number * 50], id=identity))
    assert await lane.publish_staged("job", [(part_of("p"), 40)]) is True
    assert await stored(lane, "orders") == [b"%d" % number * 50 for number in range(20)]


async def test_what_waits_for_room_goes_on_as_consumers_catch_up(broker: Broker) -> None:
    lane = await broker.restart(SMALL_STEPS)
    await lane.create_topic("orders", partitions=2, messages_max=40)
    async with lane.consume("orders", "s"):
        pass
    # There is room for 80 in two partitions; but they all have one key, and so all go to the same one.
    for number in range(6):
        await lane.stage("orders", batch_of(lane, "p", number, numbers(10 * number, 10 * number + 10), key=b"k"))
    publishing = asyncio.create_task(lane.publish_staged("job", [(part_of("p"), 6)]))

    async def is_full() -> bool:
        return (await described(lane, "orders", "s")).depth == 40

    await eventually(is_full)
    assert not publishing.done()
    received = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume("orders", "s"):
            received.append(message.payload)
            await message.ack()
            if len(received) == 60:
                break
    assert received == numbers(0, 60)
    assert await asyncio.wait_for(publishing, DEADLINE_SECONDS) is True


# --- what cannot be ---------------------------------------------------------------------------------------------------


async def test_a_full_queue_refuses_it_whole(broker: Broker) -> None:
    for settings in (NodeSettings(), SMALL_STEPS):
        lane = await broker.restart(settings)
        name = "few" if settings is SMALL_STEPS else "fewer"
        await lane.create_topic(name, messages_max=30)
        async with lane.consume(name, "s"):
            pass
        part = await stage_part(lane, name, name, [numbers(10 * n, 10 * n + 10) for n in range(10)])
        letters = await stage_part(lane, "letters", f"letters to {name}", [[b"letter"]])
        with pytest.raises(sealane.TransactionAborted) as aborted:
            await lane.publish_staged(name, [letters, part])
        assert isinstance(aborted.value.__cause__, sealane.QueueFull)
        assert await stored(lane, name) == []
        assert (await described(lane, name, "s")).depth == 0
        assert await stored(lane, "letters") == []
        await lane.configure_topic(name, messages_max=1_000)
        assert await lane.publish_staged(name, [letters, part]) is True
        await lane.delete_topic("letters")


async def test_a_part_must_be_there_as_a_whole(lane: sealane.Lane) -> None:
    part, batches = await stage_part(lane, "orders", "p", [[b"a"], [b"b"]])
    for expected in (1, 3):
        with pytest.raises(sealane.StagedPartLost, match="stage it again") as lost:
            await lane.publish_staged("job", [(part, expected)])
        assert (lost.value.part, lost.value.expected, lost.value.found) == (part.hex(), expected, 2)
    with pytest.raises(sealane.StagedPartLost) as lost:
        await lane.publish_staged("job", [(part, batches), (part_of("never staged"), 1)])
    assert (lost.value.expected, lost.value.found) == (1, 0)
    assert await lane.topics() == []
    assert await lane.publish_staged("job", [(part, batches)]) is True


async def test_dropped_parts_are_gone(lane: sealane.Lane) -> None:
    kept = await stage_part(lane, "orders", "kept", [[b"a"]])
    dropped = await stage_part(lane, "orders", "dropped", [[b"b"]])
    await lane.drop_staged([dropped[0], part_of("never staged")])
    await lane.drop_staged([dropped[0]])
    with pytest.raises(sealane.StagedPartLost):
        await lane.publish_staged("job", [kept, dropped])
    assert await lane.publish_staged("job", [kept]) is True
    assert await stored(lane, "orders") == [b"a"]


async def test_batches_come_one_after_another(lane: sealane.Lane) -> None:
    await lane.stage("orders", batch_of(lane, "p", 0, [b"a"]))
    with pytest.raises(sealane.InvalidBatch, match="1 comes next"):
        await lane.stage("orders", batch_of(lane, "p", 2, [b"c"]))
    with pytest.raises(sealane.InvalidBatch, match="this is another one"):
        await lane.stage("orders", batch_of(lane, "p", 0, [b"a", b"b"]))
    with pytest.raises(sealane.InvalidBatch, match="this is another one"):
        await lane.stage("invoices", batch_of(lane, "p", 0, [b"a"]))


@pytest.mark.parametrize("how", ["publish", "drop"])
async def test_a_part_that_is_over_takes_no_more_batches(lane: sealane.Lane, how: str) -> None:
    part = await stage_part(lane, "orders", "p", [[b"a"]])
    await (lane.publish_staged("job", [part]) if how == "publish" else lane.drop_staged([part[0]]))
    for number in (0, 1):
        with pytest.raises(sealane.InvalidBatch, match="too late"):
            await lane.stage("orders", batch_of(lane, "p", number, [b"b"]))


@pytest.mark.parametrize("meta", [BatchMeta(), BatchMeta(producer=b"short", sequence=0), BatchMeta(producer=b"p" * 16)])
async def test_a_batch_says_to_which_part_it_belongs(lane: sealane.Lane, meta: BatchMeta) -> None:
    with pytest.raises(sealane.InvalidBatch, match="to which part"):
        await lane.stage("orders", numbered(batch_of(lane, "p", 0, [b"a"]), "p", 0).with_meta(meta))


async def test_arguments_that_cannot_be_are_refused(lane: sealane.Lane) -> None:
    part = await stage_part(lane, "orders", "p", [[b"a"]])
    with pytest.raises(sealane.InvalidArgument, match="named twice"):
        await lane.publish_staged("job", [part, part])
    with pytest.raises(sealane.InvalidArgument, match="16 bytes"):
        await lane.publish_staged("job", [(b"short", 1)])
    with pytest.raises(sealane.InvalidArgument, match="1 to 256"):
        await lane.publish_staged("", [part])
    with pytest.raises(sealane.InvalidArgument, match="epoch"):
        await lane.publish_staged("job", [part], epoch=-1)


async def test_nothing_is_staged_for_a_topic_in_memory(lane: sealane.Lane) -> None:
    await lane.create_topic("scratch", durable=False)
    with pytest.raises(sealane.InvalidArgument, match="kept in memory"):
        await stage_part(lane, "scratch", "p", [[b"a"]])
    part = await stage_part(lane, "later", "q", [[b"a"]])
    await lane.create_topic("later", durable=False)
    with pytest.raises(sealane.TransactionAborted, match="kept in memory"):
        await lane.publish_staged("job", [part])


async def test_a_misspelt_topic_is_refused_where_it_is_staged(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(topics=TopicSettings(auto_create=False)))
    with pytest.raises(sealane.TopicNotFound):
        await stage_part(lane, "ordres", "p", [[b"a"]])
    with pytest.raises(sealane.InvalidName):
        await stage_part(lane, "_staged", "p", [[b"a"]])


async def test_a_topic_that_was_deleted_meanwhile_is_made_again(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"before")
    part = await stage_part(lane, "orders", "p", [[b"a"]])
    await lane.delete_topic("orders")
    assert await lane.publish_staged("job", [part]) is True
    assert await stored(lane, "orders") == [b"a"]


async def test_what_is_staged_survives_a_restart(directory: Broker) -> None:
    part = await stage_part(directory.lane, "orders", "p", [[b"a"], [b"b"]])
    lane = await directory.restart()
    assert await lane.topics() == []
    await lane.stage("orders", batch_of(lane, "p", 1, [b"b"]))
    await lane.stage("orders", batch_of(lane, "p", 2, [b"c"]))
    assert await lane.publish_staged("job", [(part[0], 3)]) is True
    assert await stored(lane, "orders") == [b"a", b"b", b"c"]
