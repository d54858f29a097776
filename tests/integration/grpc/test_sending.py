"""Messages that come one by one, in calls and in streams: durable when they are answered, and answered in order."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from sealane.client.embedded import in_process
from sealane.doors.grpc.sending import MESSAGE_BYTES
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.node.surroundings import wall_clock_us
from tests.grpc_node import NODE_ID, GrpcNode, client, grpc_node
from tests.integration.grpc.conftest import messages, metadata, payloads, pull, refusal, send_all, sent, sent_ahead
from tests.integration.native.conftest import eventually
from tests.integration.native.slow_disk import SlowFiles


async def test_a_message_is_answered_with_where_it_is(stub: Any) -> None:
    first, second = await stub.SendMessage(sent(b"1")), await stub.SendMessage(sent(b"2"))
    assert [(answer.partition, answer.offset) for answer in (first, second)] == [(0, 0), (0, 1)]
    assert [message.id for message in messages(await pull(stub))] == [first.id, second.id]


async def test_whatever_is_said_of_a_message_comes_with_it(stub: Any) -> None:
    identity = str(uuid4())
    await stub.SendMessage(
        sent(
            b"all of it",
            id=identity,
            key=b"42",
            headers={"region": "eu", "empty": ""},
            priority=7,
            ttl=Duration(seconds=60),
            checksum=hashlib.sha256(b"all of it").hexdigest().upper(),
            producer_id="somebody else",
            retries=9,
            route_history=["elsewhere"],
            partition=3,
            offset=77,
        )
    )
    (message,) = messages(await pull(stub))
    assert (message.id, message.payload, message.key, message.priority) == (identity, b"all of it", b"42", 7)
    assert message.headers == {"region": "eu", "empty": ""}
    assert message.destination == "default/orders"
    assert 0 < message.ttl.ToMilliseconds() <= 60_000
    assert message.checksum == hashlib.sha256(b"all of it").hexdigest()
    assert (message.producer_id, message.retries, list(message.route_history)) == ("admin", 0, [NODE_ID])
    assert (message.partition, message.offset) == (0, 0)


async def test_a_message_without_anything_has_the_defaults(stub: Any) -> None:
    await stub.SendMessage(sent(b""))
    (message,) = messages(await pull(stub))
    assert (message.payload, message.key, message.priority, dict(message.headers)) == (b"", b"", 5, {})
    assert not message.HasField("ttl")


async def test_a_message_that_is_delayed_is_not_there_before(stub: Any) -> None:
    await stub.SendMessage(sent(b"later", delay=Duration(seconds=3600)))
    await stub.SendMessage(sent(b"now"))
    assert payloads(await pull(stub)) == [b"now"]


async def test_the_same_id_is_stored_once(stub: Any) -> None:
    identity = str(uuid4())
    answers = [await stub.SendMessage(sent(b"once", id=identity)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert payloads(await pull(stub)) == [b"once"]


async def test_a_stream_has_an_answer_for_each_in_order(stub: Any) -> None:
    count = 500
    answers = [answer async for answer in stub.SendMessages([sent(b"%d" % number) for number in range(count)])]
    assert [answer.offset for answer in answers] == list(range(count))
    found = messages(await pull(stub, count))
    assert [message.id for message in found] == [answer.id for answer in answers]
    assert [message.payload for message in found] == [b"%d" % number for number in range(count)]


async def test_a_stream_may_go_to_several_topics_with_ids_or_without(stub: Any) -> None:
    wanted = [(f"topic-{number % 3}", str(uuid4()) if number % 4 == 0 else "") for number in range(60)]
    requests = [sent(b"%d" % number, topic, id=given) for number, (topic, given) in enumerate(wanted)]
    answers = [answer async for answer in stub.SendMessages(requests)]
    assert [answer.id for (_, given), answer in zip(wanted, answers, strict=True) if given] == [
        given for _, given in wanted if given
    ]
    for topic in range(3):
        found = payloads(await pull(stub, destination=f"topic-{topic}"))
        assert found == [b"%d" % number for number in range(topic, 60, 3)]


async def test_messages_that_come_while_others_go_to_the_disk_share_a_batch(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    async with grpc_node(engine=await slow_engine(disk)) as running, client(running.address) as stub:
        await stub.SendMessage(sent(b"the topic is there"))
        before = running.node.measures.group_commits.count
        disk.goes_on.clear()
        sending = asyncio.create_task(send_all(stub, [b"%d" % number for number in range(200)]))
        await eventually(lambda: running.door.in_flight_bytes > 200 * MESSAGE_BYTES)
        assert not sending.done(), "nothing is answered that is not durable"
        disk.goes_on.set()
        await sending
        assert running.node.measures.group_commits.count - before == 2, "the first, and all the others"


async def slow_engine(disk: SlowFiles) -> LocalEngine:
    settings = StorageSettings(commit="thread", compaction=False)
    return await LocalEngine.start(disk, settings=settings, clock=wall_clock_us, entropy=os.urandom)


async def test_a_refused_request_ends_the_stream_and_all_before_it_are_answered(running: GrpcNode, stub: Any) -> None:
    requests = [sent(b"1"), sent(b"2"), sent(b"3", priority=11), sent(b"4")]
    answers, error = await sent_ahead(running, "SendMessages", requests)
    assert [answer.offset for answer in answers] == [0, 1]
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "priority" in error.details()
    assert payloads(await pull(stub)) == [b"1", b"2"]


async def test_a_refusal_among_messages_that_go_together_is_that_of_its_own(running: GrpcNode, stub: Any) -> None:
    """A header that is too large is found when a batch is built, which may have many others."""
    requests = [sent(b"%d" % number) for number in range(50)] + [sent(b"bad", headers={"a": "x" * 5_000}), sent(b"no")]
    answers, error = await sent_ahead(running, "SendMessages", requests)
    assert [answer.offset for answer in answers] == list(range(50))
    assert "header is 5,001 bytes, the limit is 4,096" in error.details()
    assert len(payloads(await pull(stub))) == 50


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"checksum": "00" * 32}, "checksum"),
        ({"priority": -1}, "priority"),
        ({"id": "not a uuid"}, "not a UUID"),
        ({"ttl": Duration(seconds=-1)}, "ttl"),
        ({"ttl": Duration(seconds=0)}, "ttl"),
        ({"ttl": Duration(seconds=1 << 60)}, "ttl"),
        ({"delay": Duration(nanos=-1)}, "delay"),
        ({"key": b"k" * 1_025}, "key"),
        ({"headers": {str(number): "" for number in range(65)}}, "headers"),
        ({"payload": bytes((1 << 20) + 1)}, "payload"),
        ({"destination": ""}, "empty"),
        ({"destination": "_system"}, "belong to the system"),
    ],
)
async def test_what_cannot_be_a_message_is_refused_with_what_is_wrong(
    stub: Any, fields: dict[str, Any], problem: str
) -> None:
    request = sent(**{"payload": b"x", **fields})
    for call in (stub.SendMessage(request), stub.SendMessages([request])):
        error = await refusal(call)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert problem in error.details()


async def test_a_full_queue_says_when_to_come_back(running: GrpcNode, stub: Any) -> None:
    async with in_process(running.node) as lane:
        await lane.create_topic("orders", messages_max=1)
        assert await pull(stub) == []
        await lane.publish("orders", b"1")
        error = await refusal(stub.SendMessage(sent(b"2")))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert metadata(error) == {"sealane-error": "QueueFull", "retry-after": "1.000"}


async def test_a_client_that_is_faster_than_the_disk_waits_and_nothing_piles_up(tmp_path: Path) -> None:
    """What was not read yet is still with the client, or on its way."""
    disk = SlowFiles(tmp_path)
    door = GrpcDoorSettings(port=0, in_flight_bytes_max=64 << 10)
    async with grpc_node(engine=await slow_engine(disk), door=door) as running, client(running.address) as stub:
        await stub.SendMessage(sent(b"the topic is there"))
        disk.goes_on.clear()
        sending = asyncio.create_task(send_all(stub, [bytes(20_000)] * 100))
        await eventually(lambda: running.door.in_flight_bytes >= 64 << 10)
        assert running.door.in_flight_bytes < 128 << 10
        disk.goes_on.set()
        await sending
        assert len(payloads(await pull(stub, 1_000))) == 101
        assert running.door.in_flight_bytes == 0


async def test_a_stream_that_is_cancelled_leaves_nothing_behind(running: GrpcNode, stub: Any) -> None:
    call = stub.SendMessages()
    await call.write(sent(b"1"))
    await call.read()
    call.cancel()
    await eventually(lambda: len(running.door._stays) == 0)
    assert payloads(await pull(stub)) == [b"1"]


async def test_what_was_answered_is_there_after_the_power_was_cut(tmp_path: Path) -> None:
    """As by kill -9: the directory as it is at that moment."""
    async with grpc_node(tmp_path / "one") as running, client(running.address) as stub:
        await send_all(stub, [b"%d" % number for number in range(100)])
        shutil.copytree(tmp_path / "one", tmp_path / "two", ignore=shutil.ignore_patterns("*.lock", "lock"))
    async with grpc_node(tmp_path / "two") as running, client(running.address) as stub:
        assert payloads(await pull(stub)) == [b"%d" % number for number in range(100)]
