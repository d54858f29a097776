"""Topics with a schema take what fits it, whichever way it comes, and tell what does not."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import sealane
from sealane.message import BatchMeta, Limits, Stamp, from_payloads
from sealane.node import NodeSettings
from sealane.node.settings import TopicSettings
from tests.scenarios.broker import AT_ONCE, Broker, eventually, take, take_payloads

ORDER = json.dumps(
    {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)
WITH_CITY = json.dumps({**json.loads(ORDER), "properties": {"id": {"type": "integer"}, "city": {"type": "string"}}})
OF_TEXT = json.dumps({**json.loads(ORDER), "properties": {"id": {"type": "string"}}})
GOOD, BAD = b'{"id": 1}', b'{"id": "secret"}'
PART = b"a part".ljust(16, b".")


async def register(lane: sealane.Lane, topic: str, schema: str = ORDER, **wish: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await lane.administer("schema.register", topic=topic, schema=schema, **wish)
    return answer


async def stored(lane: sealane.Lane, topic: str) -> list[tuple[int | None, list[bytes]]]:
    """What a topic holds: the schema's id and the payloads of each batch."""
    return [(one.batch.meta.schema_id, one.batch.payloads()) for one in await lane.browse(topic, 0, 0)]


async def a_batch(lane: sealane.Lane, *payloads: bytes, **meta: Any) -> Any:
    batch = from_payloads(list(payloads), Stamp(1, bytes(16)), limits=Limits())
    return batch.with_meta(msgspec.structs.replace(BatchMeta(), **meta))


async def test_what_fits_is_stored_with_the_id_of_its_schema(lane: sealane.Lane) -> None:
    known = await register(lane, "orders")
    await lane.publish("orders", GOOD)
    await lane.publish_many("orders", [GOOD, b'{"id": 2}'])
    assert [id for id, _ in await stored(lane, "orders")] == [known["id"], known["id"]]
    assert await take_payloads(lane.consume("orders", "s"), 3) == [GOOD, GOOD, b'{"id": 2}']


async def test_consumers_see_by_which_schema_a_message_was_checked(lane: sealane.Lane) -> None:
    await lane.publish("orders", BAD)
    first = await register(lane, "orders")
    await lane.publish("orders", GOOD)
    second = await register(lane, "orders", WITH_CITY)
    for _ in range(5):
        await lane.publish("orders", GOOD)
    messages = await take(lane.consume("orders", "s"), 7)
    assert [message.schema_id for message in messages] == [None, first["id"], *[second["id"]] * 5]


async def test_what_does_not_fit_is_refused_with_its_place_and_nothing_of_its_batch_is_stored(
    lane: sealane.Lane,
) -> None:
    await register(lane, "orders")
    with pytest.raises(sealane.SchemaMismatch) as refused:
        await lane.publish_many("orders", [GOOD, GOOD, BAD, GOOD])
    error = refused.value
    assert (error.topic, error.version, error.index, error.path) == ("default/orders", 1, 2, "$.id")
    assert error.problem == "it must be of type integer"
    assert isinstance(error, sealane.InvalidMessage)
    assert "secret" not in str(error)
    assert await stored(lane, "orders") == []


async def publish_one(lane: sealane.Lane) -> object:
    return await lane.publish("orders", BAD)


async def publish_with_an_id(lane: sealane.Lane) -> object:
    return await lane.publish("orders", BAD, id="01a1e283-9e3f-7d74-8dda-c564e24ca1e3")


async def produce(lane: sealane.Lane) -> None:
    async with lane.producer("orders") as producer:
        await producer.send(BAD)


async def publish_to_an_exchange(lane: sealane.Lane) -> object:
    await lane.declare_exchange("sales")
    await lane.bind("sales", "free", "order")
    await lane.bind("sales", "orders", "order")
    return await lane.publish_to("sales", "order", BAD)


async def transact(lane: sealane.Lane) -> None:
    async with lane.transaction("t") as transaction:
        await transaction.publish("free", GOOD)
        await transaction.publish("orders", BAD)


async def stage(lane: sealane.Lane) -> None:
    await lane.stage("orders", await a_batch(lane, BAD, producer=PART, sequence=0))


@pytest.mark.parametrize("publish", [publish_one, publish_with_an_id, produce, publish_to_an_exchange, transact, stage])
async def test_whichever_way_it_comes_it_is_refused_as_a_whole(
    lane: sealane.Lane, publish: Callable[[sealane.Lane], Awaitable[object]]
) -> None:
    await lane.create_topic("free")
    await register(lane, "orders")
    with pytest.raises(sealane.SchemaMismatch) as refused:
        await publish(lane)
    assert (refused.value.path, refused.value.index) == ("$.id", 0)
    assert await stored(lane, "orders") == await stored(lane, "free") == []


async def test_one_message_is_not_refused_for_another_ones_fault(lane: sealane.Lane) -> None:
    await register(lane, "orders")
    outcomes = await asyncio.gather(
        *(lane.publish("orders", BAD if number % 5 == 3 else GOOD) for number in range(20)), return_exceptions=True
    )
    refused = [number for number, each in enumerate(outcomes) if isinstance(each, sealane.SchemaMismatch)]
    assert refused == [3, 8, 13, 18]
    assert sum(isinstance(each, sealane.Receipt) for each in outcomes) == 16
    assert {each.index for each in outcomes if isinstance(each, sealane.SchemaMismatch)} == {0}


async def test_the_next_version_is_one_that_may_follow_the_latest(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    with pytest.raises(sealane.IncompatibleSchema) as refused:
        await register(lane, "orders", OF_TEXT)
    assert (refused.value.topic, refused.value.mode) == ("default/orders", "backward")
    (problem,) = refused.value.problems
    assert problem.startswith("$.id: ")

    second = await register(lane, "orders", WITH_CITY)
    assert (second["version"], second["id"], second["new"]) == (2, first["id"] + 1, True)
    await lane.publish("orders", b'{"id": 1, "city": "Oslo"}')
    third = await register(lane, "orders", OF_TEXT, compatibility="none")
    assert (third["version"], third["compatibility"]) == (3, "none")


async def test_a_schema_that_is_there_already_stays_the_version_that_it_is(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    await register(lane, "orders", WITH_CITY)
    again = await register(lane, "orders", json.dumps(json.loads(ORDER), indent=4))
    assert (again["version"], again["id"], again["new"]) == (1, first["id"], False)
    assert len(await lane.administer("schema.list", topic="orders")) == 2


async def test_whoever_names_a_version_is_checked_by_it(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    await register(lane, "orders", OF_TEXT, compatibility="none")
    other = await register(lane, "others")

    await lane.stage("orders", await a_batch(lane, GOOD, schema_id=first["id"], producer=PART, sequence=0))
    await lane.publish_staged("t", [(PART, 1)])
    assert await stored(lane, "orders") == [(first["id"], [GOOD])]
    for id in (other["id"], 99):
        with pytest.raises(sealane.SchemaNotFound, match=f"with id {id}"):
            await lane.stage("orders", await a_batch(lane, GOOD, schema_id=id, producer=bytes(16), sequence=0))


async def test_a_topic_may_have_a_schema_and_check_nothing(lane: sealane.Lane) -> None:
    await register(lane, "orders", validate=False)
    await lane.publish("orders", BAD)
    assert [id for id, _ in await stored(lane, "orders")] == [None]
    await lane.administer("schema.configure", topic="orders", validate=True)
    with pytest.raises(sealane.SchemaMismatch):
        await lane.publish("orders", BAD)


async def test_without_its_schema_a_topic_takes_anything_again(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    second = await register(lane, "orders", WITH_CITY)
    assert (await lane.administer("schema.remove", topic="orders", version=2))["removed"] == [2]
    with pytest.raises(sealane.SchemaMismatch):
        await lane.publish("orders", b'{"id": 1, "city": "Oslo"}')
    assert (await lane.administer("schema.remove", topic="orders"))["removed"] == [1]
    await lane.publish("orders", BAD)
    with pytest.raises(sealane.SchemaNotFound):
        await lane.administer("schema.show", topic="orders")
    # Batches may have the ids that were given: nobody else gets them.
    assert (await register(lane, "orders"))["id"] > second["id"] > first["id"]


async def test_schemas_go_with_their_topic(lane: sealane.Lane) -> None:
    await register(lane, "orders")
    await lane.delete_topic("orders")
    assert await lane.administer("schema.list") == []
    await lane.publish("orders", BAD)
    assert (await register(lane, "orders"))["version"] == 1


async def test_what_is_no_schema_makes_no_topic(lane: sealane.Lane) -> None:
    for schema, format in (("{", "json"), ("message", "protobuf"), ("{}", "avro"), ("x", "arrow")):
        with pytest.raises(sealane.InvalidSchema):
            await register(lane, "orders", schema, format=format)
    with pytest.raises(sealane.InvalidArgument):
        await register(lane, "orders", "<xs:schema/>", format="xsd")
    assert await lane.topics() == []


async def test_schemas_survive_a_restart(directory: Broker) -> None:
    first = await register(directory.lane, "orders")
    await register(directory.lane, "gone")
    await register(directory.lane, "orders", WITH_CITY)
    await directory.lane.administer("schema.configure", topic="orders", compatibility="full")
    await directory.lane.delete_topic("gone")

    lane = await directory.restart()
    assert [each["topic"] for each in await lane.administer("schema.list")] == ["default/orders"]
    shown = await lane.administer("schema.show", topic="orders", version=1)
    assert (shown["id"], shown["schema"], shown["compatibility"]) == (first["id"], ORDER, "full")
    with pytest.raises(sealane.SchemaMismatch):
        await lane.publish("orders", BAD)
    assert (await register(lane, "others"))["id"] == first["id"] + 3


async def test_a_topic_that_may_not_be_made_by_use_is_not_made_by_its_schema(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(topics=TopicSettings(auto_create=False)))
    with pytest.raises(sealane.TopicNotFound):
        await register(lane, "orders")
    await lane.create_topic("orders")
    await register(lane, "orders")


async def test_whoever_repeats_what_was_stored_hears_that_although_it_would_not_fit_any_more(
    lane: sealane.Lane,
) -> None:
    id = "01a1e283-9e3f-7d74-8dda-c564e24ca1e3"
    receipt = await lane.publish("orders", BAD, id=id)
    async with lane.transaction("once") as transaction:
        await transaction.publish("orders", BAD)
    await register(lane, "orders")

    assert await lane.publish("orders", BAD, id=id) == receipt
    async with lane.transaction("once") as again:
        await again.publish("orders", BAD)
    assert again.replayed
    with pytest.raises(sealane.SchemaMismatch):
        await lane.publish("orders", BAD)


async def test_in_one_transaction_each_message_keeps_the_id_of_its_own_schema(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    second = await register(lane, "orders", WITH_CITY)
    old = await a_batch(lane, GOOD, schema_id=first["id"])
    new = await a_batch(lane, b'{"id": 2}', b'{"id": 3}')
    await lane.commit_transaction("t", [("orders", old), ("orders", new), ("orders", old)], [])
    found = await stored(lane, "orders")
    assert found == [(first["id"], [GOOD]), (second["id"], [b'{"id": 2}', b'{"id": 3}']), (first["id"], [GOOD])]


async def test_staged_batches_keep_the_ids_of_their_schemas(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    await lane.stage("orders", await a_batch(lane, GOOD, producer=PART, sequence=0))
    second = await register(lane, "orders", WITH_CITY)
    await lane.stage("orders", await a_batch(lane, b'{"id": 2}', producer=PART, sequence=1))
    assert await lane.publish_staged("t", [(PART, 2)])
    assert await stored(lane, "orders") == [(first["id"], [GOOD]), (second["id"], [b'{"id": 2}'])]


async def test_dead_letters_and_their_way_back_are_not_checked_and_keep_their_ids(lane: sealane.Lane) -> None:
    first = await register(lane, "orders")
    await lane.publish("orders", GOOD)
    second = await register(lane, "orders", OF_TEXT, compatibility="none")
    await lane.publish("orders", b'{"id": "x"}')
    retry = sealane.Retry(AT_ONCE.kind, AT_ONCE.delay_seconds, attempts_max=1)
    for message in await take(lane.consume("orders", "s", retry=retry), 2):
        await message.nack(reason="broken")

    async def both_are_dead() -> bool:
        dead = "orders.s.dead"
        return dead in await dead_topics() and len(await stored(lane, dead)) == 2

    async def dead_topics() -> list[str]:
        return [name.removeprefix("default/") for name in await lane.topics()]

    await eventually(both_are_dead)
    assert [id for id, _ in await stored(lane, "orders.s.dead")] == [first["id"], second["id"]]
    assert (await lane.redrive("orders", "s")).messages == 2
    assert [id for id, _ in await stored(lane, "orders")] == [first["id"], second["id"]] * 2


PROTO = 'syntax = "proto3"; package shop; message Order { int32 id = 1; string city = 2; }'
AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
ARROW_SCHEMA = pa.schema([("id", pa.int64())])
ARROW = base64.b64encode(ARROW_SCHEMA.serialize()).decode()


@pytest.mark.parametrize(
    ("format", "schema", "good", "bad", "path"),
    [
        ("protobuf", PROTO, b"\x08\x01\x12\x04Oslo", b"\x08\x01\x12\x04\xff\xff\xff\xff", "$.city"),
        ("avro", AVRO, b"\x02", b"\x02\x02", "$"),
        (
            "arrow",
            ARROW,
            pa.RecordBatch.from_pydict({"id": [1]}, schema=ARROW_SCHEMA).serialize().to_pybytes(),
            pa.schema([("id", pa.utf8())]).serialize().to_pybytes(),
            "$.id",
        ),
    ],
)
async def test_every_format_is_checked(
    lane: sealane.Lane, format: str, schema: str, good: bytes, bad: bytes, path: str
) -> None:
    known = await register(lane, "orders", schema, format=format)
    assert (known["format"], known["version"]) == (format, 1)
    await lane.publish("orders", good)
    with pytest.raises(sealane.SchemaMismatch) as refused:
        await lane.publish_many("orders", [good, bad])
    assert (refused.value.index, refused.value.path) == (1, path)
    assert not (await register(lane, "orders", schema, format=format))["new"]
    with pytest.raises(sealane.IncompatibleSchema, match="formats"):
        await register(lane, "orders", "true")


async def test_of_a_protobuf_file_with_several_messages_one_is_named(lane: sealane.Lane) -> None:
    text = PROTO + " message Line { Order order = 1; }"
    with pytest.raises(sealane.InvalidSchema, match=r"shop\.Order, shop\.Line"):
        await register(lane, "lines", text, format="protobuf")
    known = await register(lane, "lines", text, format="protobuf", message="Line")
    assert known["message"] == "shop.Line"
    await lane.publish("lines", b"\x0a\x02\x08\x01")


async def test_a_schema_can_be_tried_before_it_is_registered(lane: sealane.Lane) -> None:
    async def check(schema: str, **wish: Any) -> Any:
        return await lane.administer("schema.check", topic="orders", schema=schema, **wish)

    assert (await check(ORDER))["compatible"]
    await register(lane, "orders")
    assert (await check(ORDER))["version"] == 1
    refused = await check(OF_TEXT)
    assert (refused["compatible"], len(refused["problems"])) == (False, 1)
    assert (await check(OF_TEXT, compatibility="none"))["compatible"]
    assert len(await lane.administer("schema.list", topic="orders")) == 1


async def test_a_schema_is_found_by_the_id_that_a_batch_has(lane: sealane.Lane) -> None:
    await register(lane, "others")
    known = await register(lane, "orders")
    shown = await lane.administer("schema.show", id=known["id"])
    assert (shown["topic"], shown["version"], shown["schema"]) == ("default/orders", 1, ORDER)


# --- sealed, end to end -----------------------------------------------------------------------------------------------


@pytest.fixture
async def recipient(lane: sealane.Lane) -> sealane.PrivateKey:
    key = sealane.PrivateKey.generate()
    await lane.register_key(key.public, "billing")
    return key


async def seal_one(lane: sealane.Lane, payload: bytes) -> object:
    return await lane.publish("orders", payload, seal_for="billing")


async def seal_many(lane: sealane.Lane, payload: bytes) -> object:
    return await lane.publish_many("orders", [payload], seal_for="billing")


async def seal_and_produce(lane: sealane.Lane, payload: bytes) -> None:
    async with lane.producer("orders", seal_for="billing") as producer:
        await producer.send(payload)


async def seal_and_transact(lane: sealane.Lane, payload: bytes) -> None:
    async with lane.transaction(f"of {payload!r}") as transaction:
        await transaction.publish("orders", payload, seal_for="billing")


SEALING = [seal_one, seal_many, seal_and_produce, seal_and_transact]


@pytest.mark.parametrize("publish", SEALING)
async def test_what_is_sealed_is_checked_before(
    lane: sealane.Lane, recipient: sealane.PrivateKey, publish: Callable[[sealane.Lane, bytes], Awaitable[object]]
) -> None:
    known = await register(lane, "orders")
    await publish(lane, GOOD)
    with pytest.raises(sealane.SchemaMismatch) as refused:
        await publish(lane, BAD)
    assert (refused.value.version, refused.value.index, refused.value.path) == (1, 0, "$.id")
    assert [id for id, _ in await stored(lane, "orders")] == [known["id"]]
    (message,) = await take(lane.consume("orders", "s", keys=recipient), 1)
    assert message.payload == GOOD


@pytest.mark.parametrize("publish", [seal_one, seal_many])
async def test_a_schema_that_comes_later_is_taken_up_at_once(
    lane: sealane.Lane, recipient: sealane.PrivateKey, publish: Callable[[sealane.Lane, bytes], Awaitable[object]]
) -> None:
    await publish(lane, BAD)
    first = await register(lane, "orders")
    await publish(lane, GOOD)
    await lane.administer("schema.remove", topic="orders")
    second = await register(lane, "orders", OF_TEXT)
    await publish(lane, b'{"id": "x"}')
    assert [id for id, _ in await stored(lane, "orders")] == [None, first["id"], second["id"]]


async def test_sealed_messages_without_the_id_of_a_schema_are_refused(
    lane: sealane.Lane, recipient: sealane.PrivateKey
) -> None:
    await lane.declare_exchange("sales")
    await lane.bind("sales", "orders", "order")
    await register(lane, "orders")
    with pytest.raises(sealane.SchemaMismatch, match="schema_id"):
        await lane.publish_to("sales", "order", GOOD, seal_for="billing")
    await lane.administer("schema.configure", topic="orders", validate=False)
    await lane.publish_to("sales", "order", GOOD, seal_for="billing")
