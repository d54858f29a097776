"""One suite for every door: what a user sees of a message does not depend on how they came in."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import sealane
from sealane.delivery.config import Mode, SubscriptionConfig
from sealane.node.session import Session
from sealane.security.grants.grants import Grant
from sealane.security.principals import ADMIN, Principal
from tests.doors.by_grpc import by_grpc, by_grpc_arrow
from tests.doors.by_http import by_http
from tests.doors.by_lane import by_native, in_process
from tests.doors.by_websocket import by_packed_websocket, by_websocket
from tests.doors.node import ManyDoors, many_doors, what_expires_at_once_has_expired
from tests.doors.speaking import Given, Refused, Speaker
from tests.scenarios.broker import all_settled, described

Door = Callable[[ManyDoors], AbstractAsyncContextManager[Speaker]]

DOORS: dict[str, Door] = {
    "in-process": in_process,
    "native": by_native,
    "http": by_http,
    "websocket": by_websocket,
    "websocket-msgpack": by_packed_websocket,
    "grpc": by_grpc,
    "grpc-arrow": by_grpc_arrow,
}
ABILITIES: dict[str, set[str]] = {
    "broadcast": {"in-process", "native", "websocket", "websocket-msgpack"},
    "transactions": {"in-process", "native", "http"},
}
"""What not every protocol can express, by the doors that can."""
FULL = Given(b"\x00\xff payload", b"\xfekey", {"region": "eu", "Größe": "ß"}, 7, 600.0)
ONCE_MORE = sealane.Retry("fixed", 0.0, attempts_max=2)
DEADLINE_SECONDS = 30.0
NOBODY = Principal("nobody", "default")

every_door = pytest.mark.parametrize("door", DOORS)


def those_with(ability: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("door", [name for name in DOORS if name in ABILITIES[ability]])


@pytest.fixture
async def doors() -> AsyncIterator[ManyDoors]:
    async with many_doors() as opened:
        yield opened


@pytest.fixture(autouse=True)
def deadline(request: pytest.FixtureRequest) -> None:
    """No scenario takes this long; one that waits for longer has failed."""
    scenario = request.function

    async def in_time(**arguments: Any) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await scenario(**arguments)

    request.node.obj = functools.wraps(scenario)(in_time)


# --- publishing and taking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", DOORS)
@pytest.mark.parametrize("here", DOORS)
async def test_messages_cross_between_doors(doors: ManyDoors, here: str, there: str) -> None:
    async with DOORS[here](doors) as publisher, DOORS[there](doors) as taker:
        [identity] = await publisher.publish("t", FULL)
        [taken] = await taker.take("t", "s", 1)
        assert (taken.id, taken.payload, taken.key, taken.headers) == (identity, FULL.payload, FULL.key, FULL.headers)
        assert (taken.priority, taken.attempt, taken.offset) == (7, 1, 0)
        await taker.ack("t", "s", [taken])
    await all_settled(doors.admin, "t", "s")


@every_door
async def test_messages_come_in_their_order(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", *(Given(str(number).encode()) for number in range(20)))
        taken = await speaker.take("t", "s", 20)
        assert [int(each.payload) for each in taken] == list(range(20))


@every_door
async def test_the_more_urgent_comes_first(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"low", priority=1), Given(b"high", priority=10), Given(b"mid"))
        taken = await speaker.take("t", "s", 3)
        assert [each.payload for each in taken] == [b"high", b"mid", b"low"]


@every_door
async def test_the_same_id_is_stored_once(doors: ManyDoors, door: str) -> None:
    given = Given(b"once", id=str(uuid.uuid4()))
    async with DOORS[door](doors) as speaker:
        ids = [*await speaker.publish("t", given), *await speaker.publish("t", given)]
    assert ids == [given.id, given.id]
    assert (await doors.admin.describe_topic("t")).partitions[0].end == 1


@every_door
async def test_what_has_expired_is_not_delivered_and_what_waits_comes_later(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"gone", ttl=0.000_001), Given(b"later", delay=0.2), Given(b"now"))
        await what_expires_at_once_has_expired()
        taken = await speaker.take("t", "s", 2)
        assert [each.payload for each in taken] == [b"now", b"later"]
        await speaker.ack("t", "s", taken)
    await all_settled(doors.admin, "t", "s")


# --- answering ------------------------------------------------------------------------------------------------------


@every_door
async def test_what_is_acknowledged_is_settled(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"), Given(b"b"))
        taken = await speaker.take("t", "s", 2)
        await speaker.ack("t", "s", taken[:1])
        assert (await described(doors.admin, "t", "s")).depth == 1
        await speaker.ack("t", "s", taken[1:])
        assert (await described(doors.admin, "t", "s")).depth == 0


@every_door
async def test_what_is_given_back_comes_again_and_says_so(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"))
        await speaker.nack("t", "s", await speaker.take("t", "s", 1), delay=0, reason=None)
        [again] = await speaker.take("t", "s", 1)
        assert (again.payload, again.attempt) == (b"a", 2)


@every_door
async def test_what_fails_too_often_goes_to_the_dead_letters_with_its_reason(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a", headers={"mine": "kept"}))
        await subscribe(doors, "t", "s", ONCE_MORE)
        for _ in range(2):
            await speaker.nack("t", "s", await speaker.take("t", "s", 1), delay=0, reason="no paper")
        [dead] = await speaker.take("t.s.dead", "undertaker", 1)
    assert dead.payload == b"a"
    assert (dead.headers["mine"], dead.headers["sealane-dead-reason"]) == ("kept", "no paper")


@every_door
async def test_a_lease_that_is_kept_for_longer_is_not_over(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"))
        taken = await speaker.take("t", "s", 1)
        await speaker.extend("t", "s", taken, 600)
        assert (await described(doors.admin, "t", "s")).leased == 1
        await speaker.ack("t", "s", taken)


@every_door
async def test_answering_for_what_is_no_longer_held_is_refused(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"))
        taken = await speaker.take("t", "s", 1)
        await doors.admin.seek("t", "s", "earliest")
        with pytest.raises(Refused) as refused:
            await speaker.ack("t", "s", taken)
        assert refused.value.code == "lease-lost"


# --- sharing --------------------------------------------------------------------------------------------------------


@every_door
async def test_those_who_share_a_subscription_get_different_messages(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as one, DOORS[door](doors) as other:
        await one.publish("t", *(Given(str(number).encode()) for number in range(4)))
        taken = [*await one.take("t", "s", 2), *await other.take("t", "s", 2)]
        assert sorted(int(each.payload) for each in taken) == [0, 1, 2, 3]


@every_door
async def test_each_subscription_gets_every_message(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"))
        for subscription in ("one", "other"):
            assert [each.payload for each in await speaker.take("t", subscription, 1)] == [b"a"]


@every_door
@pytest.mark.parametrize("mode", ["queue", "exclusive", "key-shared"])
async def test_a_subscription_is_consumed_in_whatever_mode_it_has(doors: ManyDoors, door: str, mode: Mode) -> None:
    config = SubscriptionConfig(mode=mode)
    await Session(doors.node, ADMIN).subscribe("t", "s", config, "earliest")
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", *(Given(str(number).encode(), key=b"k") for number in range(4)))
        seen = []
        for _ in range(2):  # Of one key nothing comes to somebody else before this is settled.
            taken = await speaker.take("t", "s", 2, mode=mode)
            await speaker.ack("t", "s", taken)
            seen += [int(each.payload) for each in taken]
        assert seen == [0, 1, 2, 3]
    await all_settled(doors.admin, "t", "s")


@those_with("broadcast")
async def test_a_broadcast_reaches_everyone_who_listens(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as one, DOORS[door](doors) as other:
        await one.publish("t", Given(b"a"), Given(b"b"))
        for speaker in (one, other):
            assert [each.payload for each in await speaker.take("t", "s", 2, mode="broadcast")] == [b"a", b"b"]


# --- transactions ---------------------------------------------------------------------------------------------------


@those_with("transactions")
async def test_a_transaction_publishes_and_acknowledges_once(doors: ManyDoors, door: str) -> None:
    async with DOORS[door](doors) as speaker:
        await speaker.publish("orders", Given(b"order"))
        taken = await speaker.take("orders", "s", 1)
        for _ in range(2):
            await speaker.transact("order-1", {"invoices": [Given(b"invoice")]}, [("orders", "s", taken)])
        assert (await doors.admin.describe_topic("invoices")).partitions[0].end == 1
        assert (await described(doors.admin, "orders", "s")).depth == 0


# --- limits and refusals --------------------------------------------------------------------------------------------


@every_door
@pytest.mark.parametrize(
    ("topic", "given", "code"),
    [
        ("t", Given(bytes(2**20 + 1)), "limit-exceeded"),
        ("t", Given(b"", key=bytes(1025)), "limit-exceeded"),
        ("t", Given(b"", headers={str(number): "" for number in range(65)}), "limit-exceeded"),
        ("t", Given(b"", priority=11), "invalid-message"),
        ("no name", Given(b""), "invalid-name"),
        ("_mine", Given(b""), "invalid-name"),
    ],
    ids=["payload", "key", "headers", "priority", "name", "system name"],
)
async def test_what_breaks_a_rule_is_refused_and_nothing_is_stored(
    doors: ManyDoors, door: str, topic: str, given: Given, code: str
) -> None:
    async with DOORS[door](doors) as speaker:
        with pytest.raises(Refused) as refused:
            await speaker.publish(topic, given)
        assert refused.value.code == code
        assert await doors.admin.topics() == []


@every_door
async def test_a_topic_that_is_full_says_so(doors: ManyDoors, door: str) -> None:
    await doors.admin.create_topic("t", messages_max=1)
    async with DOORS[door](doors) as speaker:
        await speaker.publish("t", Given(b"a"))
        await speaker.take("t", "s", 1)
        with pytest.raises(Refused) as refused:
            await speaker.publish("t", Given(b"b"))
        assert refused.value.code == "queue-full"


@every_door
async def test_whoever_has_no_grant_may_neither_publish_nor_consume(doors: ManyDoors, door: str) -> None:
    await doors.admin.publish("t", b"secret")
    doors.guest = NOBODY
    async with DOORS[door](doors) as speaker:
        with pytest.raises(Refused) as refused:
            await speaker.publish("t", Given(b"a"))
        assert refused.value.code == "forbidden"
        with pytest.raises(Refused) as refused:
            await speaker.take("t", "s", 1)
        assert refused.value.code == "forbidden"
        await doors.node.identity.grants.add(Grant("nobody", "publish", "default/t"))
        await speaker.publish("t", Given(b"a"))


@every_door
async def test_a_stranger_is_sent_away(doors: ManyDoors, door: str) -> None:
    doors.stranger = True
    with pytest.raises(Refused) as refused:
        async with DOORS[door](doors) as speaker:
            await speaker.publish("t", Given(b"a"))
    assert refused.value.code == "unauthenticated"


async def subscribe(doors: ManyDoors, topic: str, subscription: str, retry: sealane.Retry) -> None:
    """Make a subscription with these retries, and take nothing from it."""
    config = SubscriptionConfig(retry=retry)
    await Session(doors.node, ADMIN).subscribe(topic, subscription, config, "earliest")
