"""Quotas over the wire: a limited client is slowed down and loses nothing, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import sealane
from sealane.doors.native.settings import NativeDoorSettings
from sealane.errors import RateLimited
from sealane.node import NodeSettings
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quota, Subject
from sealane.security.settings import QuotaSettings, SecuritySettings
from sealane.wire import messages as wire
from tests.integration.native.conftest import eventually
from tests.integration.native.peer import Peer, batch_of
from tests.native_node import NativeNode, native_node

DEADLINE_SECONDS = 60.0
MESSAGES = 3_000
PER_SECOND = 5_000
BURST_SECONDS = 0.02
"""So that a hundred messages may come at once."""
BILLING, SHOP = Subject("principal", "billing"), Subject("domain", "shop")


async def by_name(shown: Introduction) -> Principal:
    """Takes everyone for whom they say they are; `root` administers."""
    name = str((shown.credentials or {})["token"])
    return Principal(name, "shop", frozenset({"admin" if name == "root" else "member"}), "token", f"token:{name}")


@asynccontextmanager
async def limited_node(**quotas: Any) -> AsyncIterator[NativeNode]:
    settings = NodeSettings(security=SecuritySettings(quotas=QuotaSettings(burst_seconds=BURST_SECONDS, **quotas)))
    door = NativeDoorSettings(port=0)
    async with native_node(settings=settings, door=door, authenticate=by_name) as running:
        crashes: list[tuple[str, BaseException]] = []
        running.node.supervisor.on_crash = lambda task, error: crashes.append((task, error))
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield running
        assert crashes == []


def lane_of(running: NativeNode, name: str, **options: Any) -> Any:
    return sealane.connect(running.url, token=name, **options)


async def payloads_of(running: NativeNode, topic: str) -> list[bytes]:
    found: list[bytes] = []
    while stored := await running.node.browse(topic, 0, len(found)):
        found += [payload for each in stored for payload in each.batch.payloads()]
    return found


async def set_quota(running: NativeNode, subject: Subject, **quota: int) -> None:
    await running.node.identity.quotas.set(subject, Quota(**quota), running.node.measures.now())


async def refused_or(publishing: asyncio.Task[None], running: NativeNode) -> None:
    """Until the quota has refused something more, or everything is published."""
    limited = running.node.measures.limited
    before = limited.total()
    await eventually(lambda: limited.total() > before or publishing.done())


def cut_off(running: NativeNode) -> int:
    """Every connection, as a broken line would."""
    connections = list(running.door._connections)
    for connection in connections:
        connection.abort()
    return len(connections)


async def ask_often(lane: sealane.Lane) -> None:
    for _ in range(100):
        await lane.topics()


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# --- publishing -------------------------------------------------------------------------------------------------------


async def by_producer(lane: sealane.Lane, payloads: list[bytes]) -> None:
    async with lane.producer("orders") as producer:
        for number, payload in enumerate(payloads):
            await producer.send(payload)
            if number % 50 == 0:
                await asyncio.sleep(0)  # So that batches go out while others are under way.


async def by_publish(lane: sealane.Lane, payloads: list[bytes]) -> None:
    async with asyncio.TaskGroup() as all_of_them:
        for number, payload in enumerate(payloads):
            all_of_them.create_task(lane.publish("orders", payload))
            if number % 50 == 0:
                await asyncio.sleep(0)


async def by_publish_many(lane: sealane.Lane, payloads: list[bytes]) -> None:
    async with asyncio.TaskGroup() as all_of_them:
        for start in range(0, len(payloads), 60):
            all_of_them.create_task(lane.publish_many("orders", payloads[start : start + 60]))


@pytest.mark.parametrize("publish", [by_producer, by_publish, by_publish_many])
async def test_a_limited_publisher_delivers_everything_in_order_and_once(publish: Callable[..., Any]) -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        now = running.node.measures.now
        began = now()
        await publish(lane, numbered(MESSAGES))
        seconds = now() - began

        assert await payloads_of(running, "shop/orders") == numbered(MESSAGES)
        assert running.node.measures.limited["principal", "messages"] > 0
        # Nothing came sooner than the quota lets it; the largest batch may be in debt.
        largest = 5_000 if publish is by_producer else 4_096
        assert PER_SECOND * (seconds + BURST_SECONDS) + largest >= MESSAGES


@pytest.mark.parametrize("publish", [by_producer, by_publish, by_publish_many])
async def test_connections_that_are_lost_while_a_quota_is_used_up_lose_and_repeat_nothing(
    publish: Callable[..., Any],
) -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        publishing = asyncio.create_task(publish(lane, numbered(MESSAGES)))
        for _ in range(4):
            await refused_or(publishing, running)
            cut_off(running)
        await publishing

        assert await payloads_of(running, "shop/orders") == numbered(MESSAGES)


async def test_bytes_are_limited_too() -> None:
    async with limited_node(principal_bytes_per_second=2_000_000) as running, lane_of(running, "billing") as lane:
        await by_publish_many(lane, [payload + bytes(300) for payload in numbered(MESSAGES)])

        stored = await payloads_of(running, "shop/orders")
        assert [payload[:-300] for payload in stored] == numbered(MESSAGES)
        assert running.node.measures.limited["principal", "bytes"] > 0


async def test_messages_of_several_topics_and_an_exchange_all_arrive() -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        async with lane_of(running, "root") as root:
            await root.declare_exchange("events", "fanout")
            await root.bind("events", "audit")
        async with asyncio.TaskGroup() as all_of_them:
            for number in range(500):
                all_of_them.create_task(lane.publish(f"orders{number % 3}", b"%d" % number))
                all_of_them.create_task(lane.publish_to("events", "any", b"%d" % number))

        assert sorted(await payloads_of(running, "shop/audit")) == sorted(numbered(500))
        for topic in range(3):
            expected = [payload for payload in numbered(500) if int(payload) % 3 == topic]
            assert await payloads_of(running, f"shop/orders{topic}") == expected


async def test_an_exchange_gets_everything_once_though_connections_are_lost() -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        async with lane_of(running, "root") as root:
            await root.declare_exchange("events", "fanout")
            await root.bind("events", "audit")

        async def publish() -> None:
            async with asyncio.TaskGroup() as all_of_them:
                for number in range(1_000):
                    all_of_them.create_task(lane.publish_to("events", "any", b"%d" % number))

        publishing = asyncio.create_task(publish())
        for _ in range(4):
            await refused_or(publishing, running)
            cut_off(running)
        await publishing

        assert sorted(await payloads_of(running, "shop/audit")) == sorted(numbered(1_000))


async def test_a_neighbour_is_not_slowed_down() -> None:
    async with limited_node() as running, lane_of(running, "billing") as billing, lane_of(running, "stock") as stock:
        await set_quota(running, BILLING, messages_per_second=PER_SECOND)
        limited = asyncio.create_task(by_publish_many(billing, numbered(MESSAGES)))
        await by_publish(stock, numbered(2_000))
        await limited

        refused = running.node.measures.limited
        assert set(refused) == {("principal", "messages")}
        assert len(await payloads_of(running, "shop/orders")) == MESSAGES + 2_000
        # Whoever has no quota has no bucket either: all that was refused was billing's.
        quotas, now = running.node.identity.quotas, running.node.measures.now()
        assert quotas.left(BILLING, now).keys() == {"messages"}
        assert quotas.left(Subject("principal", "stock"), now) == quotas.left(SHOP, now) == {}


async def test_principals_of_a_limited_domain_share_what_it_has() -> None:
    async with limited_node() as running, lane_of(running, "billing") as billing, lane_of(running, "stock") as stock:
        await set_quota(running, SHOP, messages_per_second=PER_SECOND)
        await asyncio.gather(by_publish_many(billing, numbered(600)), by_publish_many(stock, numbered(600)))

        assert sorted(await payloads_of(running, "shop/orders")) == sorted(2 * numbered(600))
        assert set(running.node.measures.limited) == {("domain", "messages")}


async def test_a_batch_larger_than_the_burst_goes_through() -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        await lane.publish_many("orders", numbered(1_000))
        await lane.publish_many("orders", [b"later"])
        assert await payloads_of(running, "shop/orders") == [*numbered(1_000), b"later"]


async def test_a_change_of_the_quota_holds_for_who_is_connected() -> None:
    async with limited_node() as running, lane_of(running, "billing", wait_when_limited=False) as lane:
        await by_publish_many(lane, numbered(1_000))

        await set_quota(running, BILLING, messages_per_second=1)
        await lane.publish("orders", b"one")
        with pytest.raises(RateLimited):
            await lane.publish("orders", b"two")

        await running.node.identity.quotas.remove(BILLING, running.node.measures.now())
        await by_publish_many(lane, numbered(1_000))


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_bare_client_is_told_how_long_to_wait_and_nothing_is_stored() -> None:
    async with limited_node(principal_messages_per_second=10) as running:
        async with await Peer.enter(running.door.address, credentials={"token": "billing"}) as peer:
            assert isinstance(await peer.publish("orders", b"x"), wire.Published)
            refused = await peer.publish("orders", b"y")

        assert (refused.code, refused.fields["subject"], refused.fields["what"]) == (
            "rate-limited",
            "principal 'billing'",
            "messages",
        )
        assert 0 < refused.fields["retry_after_seconds"] <= 0.1
        assert refused.fields["limit"] == 10
        assert await payloads_of(running, "shop/orders") == [b"x"]


async def test_what_is_behind_a_limited_publish_does_not_overtake_it() -> None:
    async with limited_node(principal_messages_per_second=1) as running:
        async with await Peer.enter(running.door.address, credentials={"token": "billing"}) as peer:
            await peer.publish("orders", b"first")
            peer.say(wire.Publish(2, "orders"), batch_of(b"second"))
            refused = await peer.answer(2)
            await set_quota(running, BILLING, messages_per_second=1_000_000)
            peer.say(wire.Publish(3, "orders", behind=2), batch_of(b"third"))
            peer.say(wire.Publish(4, "orders", behind=3), batch_of(b"fourth"))
            peer.say(wire.Publish(5, "others"), batch_of(b"elsewhere"))

            assert [(await peer.answer(call)).code for call in (3, 4)] == [refused.code] * 2
            assert isinstance(await peer.answer(5), wire.Published)
        assert await payloads_of(running, "shop/orders") == [b"first"]


async def test_who_does_not_want_to_wait_hears_of_it_at_once() -> None:
    async with limited_node(principal_messages_per_second=1) as running:
        async with lane_of(running, "billing", wait_when_limited=False) as lane:
            await lane.publish("orders", b"one")
            with pytest.raises(RateLimited) as caught:
                await lane.publish("orders", b"two")
            with pytest.raises(RateLimited):
                async with lane.producer("orders") as producer:
                    await producer.send(b"three")
        assert caught.value.retry_after_seconds > 0
        assert await payloads_of(running, "shop/orders") == [b"one"]


async def test_who_would_have_to_wait_longer_than_their_time_hears_of_it_before_it_is_over() -> None:
    async with limited_node(principal_messages_per_second=1) as running, lane_of(running, "billing", timeout=5) as lane:
        await lane.publish_many("orders", numbered(100))
        with pytest.raises(RateLimited) as caught:
            await lane.publish("orders", b"too late")
        assert caught.value.retry_after_seconds > 5


async def test_nothing_of_a_producer_is_stored_behind_what_was_given_up() -> None:
    async with limited_node(principal_messages_per_second=1) as running, lane_of(running, "billing", timeout=5) as lane:
        with pytest.raises(RateLimited):
            await by_producer(lane, numbered(20_000))
        stored = await payloads_of(running, "shop/orders")
        assert stored == numbered(len(stored))


async def test_requests_are_limited_and_asked_again() -> None:
    async with limited_node() as running, lane_of(running, "billing") as lane:
        await set_quota(running, BILLING, requests_per_second=100)
        for _ in range(10):
            await lane.topics()
        assert running.node.measures.limited["principal", "requests"] > 0

        async with lane_of(running, "billing", wait_when_limited=False) as hasty:
            with pytest.raises(RateLimited, match="requests a second"):
                await ask_often(hasty)


async def test_a_consumer_waits_for_its_turn_to_attach() -> None:
    async with limited_node() as running, lane_of(running, "billing") as lane:
        await lane.publish("orders", b"x")
        await set_quota(running, BILLING, requests_per_second=20)
        for subscription in ("one", "two", "three", "four"):
            async for message in lane.consume("orders", subscription=subscription):
                assert message.payload == b"x"
                break
        assert running.node.measures.limited["principal", "requests"] > 0


async def test_an_answer_to_a_delivery_is_never_refused() -> None:
    async with limited_node() as running, lane_of(running, "billing", wait_when_limited=False) as lane:
        await lane.publish_many("orders", numbered(20))
        consumer = aiter(lane.consume("orders", subscription="workers"))
        messages = [await anext(consumer) for _ in range(20)]
        await set_quota(running, BILLING, requests_per_second=1, messages_per_second=1, bytes_per_second=1)
        with pytest.raises(RateLimited):
            await ask_often(lane)

        for message in messages[:15]:
            await message.ack(confirm=True)
        await messages[15].extend(10)
        await messages[16].nack(reason="not today")
        async with lane.transaction("acks alone") as transaction:
            for message in messages[17:]:
                await transaction.ack(message)

        described = running.node.measures.topic("shop/orders").subscription("workers")
        await eventually(lambda: (described.acked, described.nacked) == (18, 1))


async def test_a_limited_transaction_happens_once_it_may() -> None:
    async with limited_node(principal_messages_per_second=PER_SECOND) as running, lane_of(running, "billing") as lane:
        for number in range(5):
            async with lane.transaction(f"t-{number}") as transaction:
                await transaction.publish_many("orders", numbered(100))
        assert await payloads_of(running, "shop/orders") == 5 * numbered(100)
        assert running.node.measures.limited["principal", "messages"] > 0


# --- in the process ---------------------------------------------------------------------------------------------------


async def test_the_broker_in_a_process_has_a_quota_only_by_name() -> None:
    async with sealane.embedded() as lane:
        await lane.administer("quota.set", scope="principal", name="admin", messages_per_second=10)
        await lane.publish_many("orders", numbered(20))
        with pytest.raises(RateLimited, match="principal 'admin'"):
            await lane.publish("orders", b"x")
        await lane.administer("quota.remove", scope="principal", name="admin")
        await lane.publish("orders", b"x")
