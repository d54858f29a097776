"""A message whose id the caller gives is stored once, however often it is sent."""

from __future__ import annotations

import asyncio
import uuid

import pyarrow as pa
import pytest

import sealane
from tests.scenarios.broker import Broker, take_payloads

GIVEN = uuid.UUID("01890000-0000-7000-8000-00000000002a")


async def end(lane: sealane.Lane) -> int:
    return sum(partition.end for partition in (await lane.describe_topic("orders")).partitions)


async def test_a_repeat_gets_the_receipt_of_the_first(lane: sealane.Lane) -> None:
    first = await lane.publish("orders", b"a", id=GIVEN)
    await lane.publish("orders", b"b")
    assert await lane.publish("orders", b"a", id=GIVEN) == first
    assert await end(lane) == 2


async def test_repeats_at_the_same_time_are_stored_once(lane: sealane.Lane) -> None:
    receipts = await asyncio.gather(*(lane.publish("orders", b"a", id=GIVEN) for _ in range(10)))
    more = [asyncio.create_task(lane.publish("orders", b"a", id=GIVEN)) for _ in range(3)]
    assert len({*receipts, *await asyncio.gather(*more)}) == 1
    assert await end(lane) == 1


async def test_a_repeat_after_a_restart_is_recognised(directory: Broker) -> None:
    first = await directory.lane.publish("orders", b"a", id=GIVEN)
    for _ in range(2):
        lane = await directory.restart()
        assert await lane.publish("orders", b"a", id=GIVEN) == first
    assert await end(lane) == 1


async def test_repeats_within_one_batch_are_stored_once(lane: sealane.Lane) -> None:
    ids = [uuid.UUID(int=number).bytes for number in (1, 2, 1, 3, 2)]
    table = pa.table({"payload": [b"a", b"b", b"a", b"c", b"b"], "id": pa.array(ids, pa.binary(16))})
    receipts = list(await lane.publish_many("orders", table))
    assert [receipt.offset for receipt in receipts] == [0, 1, 0, 2, 1]
    again = list(await lane.publish_many("orders", table))
    assert again == receipts
    assert await take_payloads(lane.consume("orders", "billing"), 3) == [b"a", b"b", b"c"]


async def test_a_batch_that_is_partly_new_stores_what_is_new(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", id=GIVEN)
    ids = [uuid.UUID(int=7).bytes, GIVEN.bytes]
    table = pa.table({"payload": [b"b", b"a"], "id": pa.array(ids, pa.binary(16))})
    assert [receipt.offset for receipt in await lane.publish_many("orders", table)] == [1, 0]
    assert await end(lane) == 2


async def test_an_id_finds_its_partition_again(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", partitions=5)
    ids = [uuid.UUID(int=number) for number in range(50)]
    first = [await lane.publish("orders", b"", id=id) for id in ids]
    again = [await lane.publish("orders", b"", id=id) for id in ids]
    assert again == first
    assert len({receipt.partition for receipt in first}) == 5
    assert await end(lane) == 50


async def test_the_window_ends(lane: sealane.Lane) -> None:
    await lane.create_topic("orders", id_window_ids_max=2)
    ids = [uuid.UUID(int=number) for number in range(3)]
    for id in ids:
        await lane.publish("orders", b"", id=id)
    assert (await lane.publish("orders", b"", id=ids[2])).offset == 2
    assert (await lane.publish("orders", b"", id=ids[0])).offset == 3


async def test_the_same_id_in_another_topic_is_another_message(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a", id=GIVEN)
    await lane.publish("returns", b"b", id=GIVEN)
    assert await take_payloads(lane.consume("returns", "s"), 1) == [b"b"]


@pytest.mark.parametrize("id", ["not an id", b"short", 7, "01890000-0000-7000-8000-00000000002"])
async def test_what_is_no_id_is_refused(lane: sealane.Lane, id) -> None:
    with pytest.raises(sealane.InvalidMessage) as refused:
        await lane.publish("orders", b"a", id=id)
    assert refused.value.field == "id"
