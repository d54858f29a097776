"""Publishing and consuming over a WebSocket, as a client sees it."""

from __future__ import annotations

import asyncio
import base64
import uuid
from typing import Any

import pytest

import sealane
from sealane.doors.http.websocket.conversation import CONSUMERS_MAX, CREDIT_MESSAGES_MAX
from tests.http_node import HttpNode
from tests.integration.http.socket_client import PACKED, Refused, open_socket

DEADLINE_SECONDS = 30.0


async def test_what_is_published_is_answered_with_where_it_is_and_delivered(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        receipts = await socket.publish("t", "a", "b", key="k", headers={"region": "eu"}, priority=7)
        assert [(receipt["partition"], receipt["offset"]) for receipt in receipts] == [(0, 0), (0, 1)]
        consumer = await socket.subscribe("t", credit=10)
        delivery = await socket.news("deliver")
        assert (delivery["consumer"], delivery["delivery"]) == (consumer, 1)
        first, second = delivery["messages"]
    assert first | {"id": receipts[0]["id"], "payload": "a", "key": "k", "headers": {"region": "eu"}} == first
    assert first | {"priority": 7, "attempt": 1, "partition": 0, "offset": 0} == first
    assert second["payload"] == "b"


async def test_messagepack_carries_bytes_as_they_are(node: HttpNode) -> None:
    async with open_socket(node.door, subprotocols=[PACKED]) as socket:
        [receipt] = await socket.publish("t", b"\x00\xff", key=b"\xfe", id=str(uuid.uuid4()))
        await socket.subscribe("t", credit=1)
        delivery = await socket.news("deliver")
        [message] = delivery["messages"]
        assert (message["payload"], message["key"], message["id"]) == (b"\x00\xff", b"\xfe", receipt["id"])
        await socket.call("ack", consumer=1, ids=[message["id"]])


async def test_bytes_that_are_no_text_are_base64_in_json(node: HttpNode) -> None:
    raw = base64.b64encode(b"\xff\x00").decode()
    async with open_socket(node.door, subprotocols=["sealane.v1.json"]) as socket:
        await socket.call("publish", topic="t", messages=[{"payload_base64": raw, "key_base64": raw}])
        await socket.subscribe("t", credit=1)
        [message] = await socket.messages(1)
    assert (message["payload_base64"], message["key_base64"]) == (raw, raw)


async def test_what_is_acknowledged_does_not_come_again(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", "b", "c")
        consumer = await socket.subscribe("t", credit=3)
        a, b, c = await socket.messages(3)
        await socket.call("ack", consumer=consumer, ids=[a["id"], c["id"]])
    async with open_socket(node.door) as socket:
        await socket.subscribe("t", credit=3)
        [again] = await socket.messages(1)
        assert (again["id"], again["attempt"]) == (b["id"], 2)


async def test_an_ack_that_nobody_waits_for_is_done_too(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", "b")
        consumer = await socket.subscribe("t", credit=1)
        delivery = await socket.news("deliver")
        await socket.say("ack", consumer=consumer, delivery=delivery["delivery"])
        await socket.call("credit", consumer=consumer, messages=1)
        delivery = await socket.news("deliver")
        await socket.say("ack", consumer=consumer, delivery=delivery["delivery"])
        await socket.call("ping")
    assert node.node.topic("t").owners[0].core.subscription("s").settled.floor == 2


async def test_what_is_given_back_comes_again_with_another_attempt(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        consumer = await socket.subscribe("t", credit=2)
        [message] = await socket.messages(1)
        await socket.call("nack", consumer=consumer, ids=[message["id"]], delay=0, reason="not now")
        [again] = await socket.messages(1)
    assert (again["id"], again["attempt"]) == (message["id"], 2)


async def test_what_fails_too_often_is_a_dead_letter(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "poison")
        consumer = await socket.subscribe("t", credit=5, retry={"kind": "fixed", "delay_seconds": 0, "attempts_max": 2})
        for _ in range(2):
            delivery = await socket.news("deliver")
            await socket.call("nack", consumer=consumer, delivery=delivery["delivery"], reason="it cannot be read")
        await socket.subscribe("t.s.dead", "undertaker", credit=1)
        [dead] = await socket.messages(1)
    assert dead["payload"] == "poison"
    assert "it cannot be read" in dead["headers"].values()


async def test_a_lease_can_be_extended(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        consumer = await socket.subscribe("t", credit=1, lease_seconds=60)
        delivery = await socket.news("deliver")
        extended = await socket.call("extend", consumer=consumer, delivery=1, seconds=3_600)
        assert extended["deadline"] > delivery["deadline"]


async def test_a_lease_that_has_expired_is_revoked_and_cannot_be_answered_for(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        consumer = await socket.subscribe("t", credit=1, lease_seconds=0.05)
        [message] = await socket.messages(1)
        revoked = await socket.news("revoked")
        assert revoked == {"type": "revoked", "consumer": consumer, "ids": [message["id"]]}
        with pytest.raises(Refused) as refused:
            await socket.call("ack", consumer=consumer, ids=[message["id"]])
        assert refused.value.problem["type"] == "urn:sealane:lease-lost"


async def test_no_more_comes_than_there_is_credit_for(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", *map(str, range(10)))
        consumer = await socket.subscribe("t")
        await socket.call("ping")
        assert not socket._news
        await socket.call("credit", consumer=consumer, messages=3)
        assert [message["payload"] for message in await socket.messages(3)] == ["0", "1", "2"]
        await socket.call("ping")
        assert not socket._news
        await socket.say("credit", consumer=consumer, messages=7)
        assert [message["payload"] for message in await socket.messages(7)] == [str(number) for number in range(3, 10)]


async def test_a_connection_may_only_ask_for_so_much_that_is_unanswered(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", "b")
        first = await socket.subscribe("t", "first", credit=2)
        a, _ = await socket.messages(2)
        second = await socket.subscribe("t", "second")
        with pytest.raises(Refused, match=r"answer for some first"):
            await socket.call("credit", consumer=second, messages=CREDIT_MESSAGES_MAX - 1)
        await socket.call("ack", consumer=first, ids=[a["id"]])
        await socket.call("credit", consumer=second, messages=CREDIT_MESSAGES_MAX - 1)
        with pytest.raises(Refused, match=r"answer for some first"):
            await socket.subscribe("t", "third", credit=1)


async def test_a_connection_has_only_so_many_consumers(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        for number in range(CONSUMERS_MAX):
            await socket.subscribe("t", f"s{number}")
        with pytest.raises(Refused, match="open another one"):
            await socket.subscribe("t", "one-too-many")
        await socket.call("unsubscribe", consumer=1)
        await socket.subscribe("t", "one-too-many")


async def test_a_consumer_that_unsubscribes_gives_back_what_it_has_without_an_attempt(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a")
        consumer = await socket.subscribe("t", credit=1)
        await socket.messages(1)
        await socket.call("unsubscribe", consumer=consumer)
        with pytest.raises(Refused, match="none of the number"):
            await socket.call("credit", consumer=consumer, messages=1)
        await socket.subscribe("t", credit=1)
        [again] = await socket.messages(1)
    assert again["attempt"] == 1


async def test_a_client_that_goes_away_gives_back_what_it_was_handed(node: HttpNode) -> None:
    async with open_socket(node.door) as first:
        await first.publish("t", "a")
        await first.subscribe("t", credit=1)
        await first.messages(1)
        first.connection.transport.abort()
        async with open_socket(node.door) as second:
            await second.subscribe("t", credit=1)
            [again] = await second.messages(1)
    assert (again["payload"], again["attempt"]) == ("a", 2)


async def test_messages_can_be_acknowledged_as_they_are_sent(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", "b")
        await socket.subscribe("t", credit=2, auto_ack=True)
        assert (await socket.news("deliver"))["deadline"] is None
        async with asyncio.timeout(DEADLINE_SECONDS):
            while node.node.topic("t").owners[0].core.subscription("s").settled.floor < 2:
                await socket.call("ping")


async def test_a_filter_and_a_start_choose_what_comes(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.publish("t", "a", headers={"region": "eu"})
        await socket.publish("t", "b", headers={"region": "us"})
        await socket.publish("t", "c", headers={"region": "eu"})
        await socket.subscribe("t", "filtered", filter="headers['region'] = 'eu'", credit=9)
        assert [message["payload"] for message in await socket.messages(2)] == ["a", "c"]
        await socket.subscribe("t", "later", start="0:2", credit=9)
        assert [message["payload"] for message in await socket.messages(1)] == ["c"]
        await socket.subscribe("t", "latest", start="latest", credit=9)
        await socket.publish("t", "d", headers={"region": "us"})
        assert {message["payload"] for message in await socket.messages(2)} == {"d"}


async def test_a_broadcast_reaches_every_consumer(node: HttpNode) -> None:
    async with open_socket(node.door) as one, open_socket(node.door) as other:
        for socket in (one, other):
            await socket.subscribe("t", "all", mode="broadcast", start="latest", credit=1, auto_ack=True)
        await one.publish("t", "to everyone")
        for socket in (one, other):
            [message] = await socket.messages(1)
            assert message["payload"] == "to everyone"


async def test_a_websocket_and_the_native_client_share_a_subscription(node: HttpNode) -> None:
    async with sealane.connect(node.url) as lane, open_socket(node.door) as socket:
        await socket.subscribe("t", credit=5)
        receipt = await lane.publish("t", b"hello")
        [message] = await socket.messages(1)
        assert message["id"] == str(receipt.id)
        await socket.call("ack", consumer=1, delivery=1)


async def test_a_deleted_topic_closes_its_consumers_and_not_the_connection(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        consumer = await socket.subscribe("t", credit=1)
        await node.http.delete("/topics/t")
        closed = await socket.news("closed")
        assert (closed["consumer"], closed["problem"]["status"]) == (consumer, 404)
        await socket.call("ping")


@pytest.mark.parametrize(
    ("said", "status", "detail"),
    [
        ({"type": "publish", "topic": "t", "messages": [{"payload": "a"}, {}]}, 422, "messages[1]"),
        ({"type": "publish", "topic": "t", "messages": [{"payload": "a", "key": 5}]}, 422, "messages[0].key"),
        ({"type": "publish", "topic": "t", "messages": []}, 422, "no messages"),
        ({"type": "publish", "topic": "a b", "messages": [{"payload": "a"}]}, 422, "a b"),
        ({"type": "publish", "topic": "t"}, 422, "messages"),
        ({"type": "subscribe", "topic": "t", "subscription": "s", "mode": "loud"}, 422, "mode"),
        ({"type": "subscribe", "topic": "t", "subscription": "s", "start": "tomorrow"}, 422, "start"),
        ({"type": "subscribe", "topic": "t", "subscription": "s", "filter": "key ="}, 422, "filter"),
        ({"type": "subscribe", "topic": "t", "subscription": "s", "lease_seconds": -1}, 422, "lease_seconds"),
        ({"type": "subscribe", "topic": "t", "subscription": "s", "retry": {"attempts_max": 0}}, 422, "attempts_max"),
        ({"type": "credit", "consumer": 7, "messages": 1}, 422, "none of the number 7"),
        ({"type": "ack", "consumer": 7, "delivery": 1}, 422, "none of the number 7"),
        ({"type": "ack", "consumer": 7}, 422, "one of delivery and ids"),
        ({"type": "ack", "consumer": 7, "delivery": 1, "ids": []}, 422, "one of delivery and ids"),
        ({"type": "nack", "consumer": 7, "delivery": 1, "delay": -1}, 422, "delay"),
        ({"type": "extend", "consumer": 7, "delivery": 1, "seconds": 0}, 422, "seconds"),
        ({"type": "hello", "token": "x"}, 422, "already"),
        ({"type": "dance"}, 422, "type"),
        ({"type": "ping", "loudly": True}, 422, "loudly"),
        ({}, 422, "type"),
    ],
)
async def test_what_cannot_be_done_is_an_error_of_that_call_alone(
    node: HttpNode, said: dict[str, Any], status: int, detail: str
) -> None:
    async with open_socket(node.door) as socket:
        with pytest.raises(Refused) as refused:
            await socket.call(**{"type": "", **said})
        assert refused.value.problem["status"] == status
        assert detail in refused.value.problem["detail"]
        assert {"type", "title"} <= refused.value.problem.keys()
        await socket.call("ping")


async def test_an_error_of_what_has_no_call_is_told_too(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        await socket.say("ack", consumer=1, delivery=1)
        error = await socket.news("error")
    assert "call" not in error
    assert error["problem"]["detail"] == "consumer: this connection has none of the number 1"


async def test_messages_are_stored_in_the_order_in_which_they_were_said(node: HttpNode) -> None:
    async with open_socket(node.door) as socket:
        for number in range(200):
            await socket.say("publish", topic="t", messages=[{"payload": str(number)}])
        await socket.subscribe("t", credit=500)
        assert [message["payload"] for message in await socket.messages(200)] == [str(number) for number in range(200)]


async def test_large_deliveries_come_in_several_frames(node: HttpNode) -> None:
    async with open_socket(node.door, max_size=1 << 20) as socket:
        for _ in range(4):
            await socket.publish("t", *["x" * 50_000] * 10)
        consumer = await socket.subscribe("t", credit=40)
        deliveries: list[dict[str, Any]] = []
        while sum(len(delivery["messages"]) for delivery in deliveries) < 40:
            deliveries.append(await socket.news("deliver"))
        assert len(deliveries) > 4
        for delivery in deliveries:
            await socket.call("ack", consumer=consumer, delivery=delivery["delivery"])
    assert node.node.topic("t").owners[0].core.subscription("s").settled.floor == 40
