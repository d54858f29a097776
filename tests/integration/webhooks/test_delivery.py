"""Messages of a subscription come to its receiver, signed, and are settled by how it answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import datetime
from pathlib import Path

import pytest

from sealane.errors import AlreadyExists, WebhookNotFound
from sealane.message.schema import HEADERS
from tests.integration.webhooks.pushing import FAST, pushing
from tests.integration.webhooks.receiver import Received, receiver, status
from tests.unit.node.running_node import until


def verified(secret: str, received: Received) -> bool:
    """As a receiver does it; nothing of the code under test is used."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join(
        [received.headers["webhook-id"].encode(), received.headers["webhook-timestamp"].encode(), received.body]
    )
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, each) for each in received.headers["webhook-signature"].split(" "))


async def test_a_message_comes_signed_and_whole(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        made = await run.create(hook.url(path="/orders?from=sealane"))
        receipt = await run.lane.publish("orders", "grün".encode(), key=b"42", headers={"region": "eu"}, priority=7)
        (received,) = await hook.count(1)
        await run.until_settled()

    content = received.json
    assert datetime.fromisoformat(content["messages"][0].pop("created")).utcoffset() is not None
    assert content == {
        "topic": "default/orders",
        "subscription": "billing",
        "messages": [
            {
                "id": str(receipt.id),
                "payload": "grün",
                "key": "42",
                "headers": {"region": "eu"},
                "priority": 7,
                "attempt": 1,
                "partition": 0,
                "offset": 0,
            }
        ],
    }
    assert received.target == "/orders?from=sealane"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["host"] == f"hooks.example:{hook.port}"
    assert received.headers["webhook-id"] == str(receipt.id)
    assert abs(int(received.headers["webhook-timestamp"]) - time.time()) < 60
    assert verified(made["secret"], received)
    assert not verified("whsec_" + base64.b64encode(bytes(32)).decode(), received)


async def test_what_is_not_text_comes_as_base64(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.create(hook.url())
        await run.lane.publish("orders", b"\xff\xfe")
        (received,) = await hook.count(1)
    assert base64.b64decode(received.json["messages"][0]["payload_base64"]) == b"\xff\xfe"


async def test_several_messages_go_with_one_request_and_share_its_connection(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.lane.publish_many("orders", [b"%d" % number for number in range(250)])
        await run.create(hook.url(), messages_max=100)
        await hook.until(lambda: len(hook.payloads) == 250)
        await run.until_settled()
    assert hook.payloads == [str(number) for number in range(250)]
    assert [len(each.payloads) for each in hook.received] == [100, 100, 50]
    assert len({each.headers["webhook-id"] for each in hook.received}) == 3
    assert hook.connections == 1


async def test_messages_of_all_partitions_come(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.lane.create_topic("orders", partitions=3)
        await run.create(hook.url(), messages_max=10)
        for number in range(30):
            await run.lane.publish("orders", b"%d" % number, key=b"%d" % number)
        await hook.until(lambda: len(hook.payloads) >= 30)
        await run.until_settled()
    assert sorted(map(int, hook.payloads)) == list(range(30))
    assert max(len(each.payloads) for each in hook.received) <= 10


async def test_a_failed_message_comes_again_under_the_same_id_until_it_is_accepted(tmp_path: Path) -> None:
    answers = [status(500), status(404)]
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = lambda received: answers.pop() if answers else status(204)
        made = await run.create(hook.url())
        await run.lane.publish("orders", b"again")
        received = await hook.count(3)
        await run.until_settled()
    assert len(received) == 3
    assert [each.json["messages"][0]["attempt"] for each in received] == [1, 2, 3]
    assert len({each.headers["webhook-id"] for each in received}) == 1
    assert all(verified(made["secret"], each) for each in received)


async def test_a_message_that_is_never_accepted_is_a_dead_letter_that_says_why(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, failures_max=100) as run:
        hook.answer = lambda received: status(422 if "poison" in received.payloads else 200)
        await run.create(hook.url(), retry={**FAST, "attempts_max": 3})
        await run.lane.publish("orders", b"poison")
        await run.lane.publish("orders", b"bread")
        await until(lambda: "default/orders.billing.dead" in run.node.topics)
        await run.until_settled()
        (dead,) = [stored.batch for stored in await run.lane.browse("orders.billing.dead")]
    assert dead.payloads() == [b"poison"]
    assert dict(dead.column(HEADERS).to_pylist()[0])["sealane-dead-reason"] == "the receiver answered 422"
    assert hook.payloads.count("poison") == 3
    assert "bread" in hook.payloads


async def test_a_receiver_that_asks_for_time_gets_it(tmp_path: Path) -> None:
    answers = [status(503, "retry-after: 3600"), status(429, "retry-after: 0")]
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = lambda received: answers.pop()
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await run.lane.publish("orders", b"2")
        await hook.count(2)
        shown = await run.shows(lambda each: each["retry_seconds"] > 3_000)
        assert shown["breaker"] == "closed"
        assert shown["last"]["reason"] == "the receiver answered 503"
        assert await run.depth() == 2
        # Whoever resumes it does not want to wait.
        hook.answer = lambda received: status(200)
        await run.ask("resume")
        await hook.count(3)
    assert len(hook.received) == 3


async def test_a_receiver_that_is_gone_gets_nothing_more_until_it_is_resumed(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = lambda received: status(410)
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        shown = await run.shows(lambda each: each["state"] == "broken")
        assert "410" in shown["reason"]
        await run.lane.publish("orders", b"2")
        hook.answer = lambda received: status(200)
        await run.ask("resume")
        await hook.count(3)
        await run.until_settled()
    assert sorted(hook.payloads) == ["1", "1", "2"]
    # What it did not want was no failed attempt.
    assert [each.json["messages"][0]["attempt"] for each in hook.received] == [1, 1, 1]


async def test_a_paused_webhook_sends_nothing_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await hook.count(1)
        assert (await run.ask("pause"))["state"] == "paused"
        await until(lambda: not run.node.topic("orders").attachments)
        await run.lane.publish("orders", b"2")
        assert (await run.ask("show"))["state"] == "paused"
        await run.ask("resume")
        await hook.count(2)
    assert hook.payloads == ["1", "2"]


async def test_during_a_rotation_both_secrets_sign_and_afterwards_the_new_one_alone(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        first = (await run.create(hook.url()))["secret"]
        second = (await run.ask("rotate"))["secret"]
        await run.lane.publish("orders", b"1")
        (both,) = list(await hook.count(1))
        third = (await run.ask("rotate", keep_seconds=0))["secret"]
        await run.lane.publish("orders", b"2")
        alone = (await hook.count(2))[1]
        shown = await run.ask("show")
    assert verified(first, both)
    assert verified(second, both)
    assert len(both.headers["webhook-signature"].split(" ")) == 2
    assert verified(third, alone)
    assert not verified(second, alone)
    assert len(shown["secrets"]) == 1
    assert "secret" not in shown


async def test_a_removed_webhook_leaves_the_messages_to_others(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.create(hook.url())
        with pytest.raises(AlreadyExists):
            await run.create(hook.url())
        await run.ask("remove")
        await run.lane.publish("orders", b"1")
        with pytest.raises(WebhookNotFound):
            await run.ask("show")
        async for message in run.lane.consume("orders", "billing"):
            await message.nack(delay=0, confirm=True)
            break
        # One that is made again begins anew.
        await run.create(hook.url())
        await hook.count(1)


async def test_a_webhook_goes_with_its_subscription_and_with_its_topic(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        for subscription in ("billing", "shipping"):
            await run.create(hook.url(), subscription)
        await run.lane.unsubscribe("orders", "billing")
        assert [each["subscription"] for each in await run.lane.administer("webhook.list")] == ["shipping"]
        await run.lane.delete_topic("orders")
        assert await run.lane.administer("webhook.list") == []
        await until(lambda: not run.pusher._running)
        await run.lane.publish("orders", b"1")
        async for message in run.lane.consume("orders", "shipping"):
            await message.ack(confirm=True)
            break
        assert hook.received == []
