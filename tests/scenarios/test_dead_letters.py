"""Messages that fail for good become dead letters, and come back when they are driven."""

from __future__ import annotations

import asyncio

import pytest
from pyroaring import BitMap64

import sealane
from tests.scenarios.broker import Broker, all_settled, described, eventually, take, take_payloads

TWICE = sealane.Retry("fixed", 0.0, attempts_max=2)
ONCE = sealane.Retry("fixed", 0.0, attempts_max=1)
DEAD = "orders.billing.dead"


async def fail_all(lane: sealane.Lane, count: int, retry: sealane.Retry = ONCE, reason: str | None = "broken") -> None:
    """Let every message of the subscription die, and wait until they are dead letters."""
    failed = 0
    async with asyncio.timeout(10):
        async for message in lane.consume("orders", "billing", retry=retry):
            await message.nack(reason=reason)
            failed += 1
            if failed == count * retry.attempts_max:
                break
    await all_settled(lane, "orders", "billing")


async def test_after_its_last_attempt_a_message_is_a_dead_letter_that_tells_its_story(lane: sealane.Lane) -> None:
    receipt = await lane.publish("orders", b"poison", key=b"42", headers={"region": "eu"}, priority=7, ttl=3600)
    await fail_all(lane, 1, TWICE, "no such customer")

    [dead] = await take(lane.consume(DEAD, "look"), 1)

    assert (dead.payload, dead.key, dead.priority, dead.id) == (b"poison", b"42", 7, receipt.id)
    story = dict(dead.headers)
    assert story.pop("region") == "eu"
    assert int(story.pop("sealane-dead-time")) > 0
    assert story == {
        "sealane-dead-topic": "default/orders",
        "sealane-dead-subscription": "billing",
        "sealane-dead-partition": "0",
        "sealane-dead-offset": "0",
        "sealane-dead-attempts": "2",
        "sealane-dead-reason": "no such customer",
    }


async def test_a_lease_that_ends_is_a_reason_too(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"slow")
    await take(lane.consume("orders", "billing", lease_seconds=0.05, retry=ONCE), 1)
    await all_settled(lane, "orders", "billing")
    [dead] = await take(lane.consume(DEAD, "look"), 1)
    assert dead.headers["sealane-dead-reason"] == "lease expired"


async def test_other_subscriptions_keep_the_message(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"poison")
    await fail_all(lane, 1)
    assert await take_payloads(lane.consume("orders", "shipping"), 1) == [b"poison"]


async def test_a_dead_letter_topic_is_a_topic_like_any_other(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    await fail_all(lane, 2)
    assert f"default/{DEAD}" in await lane.topics()
    assert await take_payloads(lane.consume(DEAD, "look"), 2) == [b"a", b"b"]


async def test_dead_letters_of_every_mode(lane: sealane.Lane) -> None:
    for mode in ("exclusive", "key-shared", "broadcast"):
        topic = f"orders-{mode}"
        await lane.publish(topic, b"poison", key=b"k")
        [message] = await take(lane.consume(topic, "billing", mode=mode, retry=ONCE), 1)
        await message.nack(reason="broken")

        async def is_dead(topic: str = topic) -> bool:
            return f"default/{topic}.billing.dead" in await lane.topics()

        await eventually(is_dead)
        [dead] = await take(lane.consume(f"{topic}.billing.dead", "look"), 1)
        assert (dead.payload, dead.headers["sealane-dead-subscription"]) == (b"poison", "billing")


async def test_dead_letters_survive_a_restart(directory: Broker) -> None:
    await directory.lane.publish("orders", b"poison")
    await fail_all(directory.lane, 1)
    lane = await directory.restart()
    assert (await described(lane, "orders", "billing")).depth == 0
    assert await take_payloads(lane.consume(DEAD, "look"), 1) == [b"poison"]


# --- driving them back ------------------------------------------------------------------------------------------------


async def test_a_redrive_brings_them_back_as_they_were_to_that_subscription_alone(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"poison", key=b"42", headers={"region": "eu"}, priority=7)
    await fail_all(lane, 1)
    assert await take_payloads(lane.consume("orders", "shipping"), 1) == [b"poison"]

    report = await lane.redrive("orders", "billing")

    assert (report.messages, report.dry_run, dict(report.reasons)) == (1, False, {"broken": 1})
    [back] = await take(lane.consume("orders", "billing"), 1)
    assert (back.payload, back.key, back.headers, back.priority, back.attempt) == (
        b"poison",
        b"42",
        {"region": "eu"},
        7,
        1,
    )
    await back.ack(confirm=True)
    await lane.publish("orders", b"after")
    assert await take_payloads(lane.consume("orders", "shipping"), 1) == [b"after"]
    assert (await lane.redrive("orders", "billing")).messages == 0


async def test_a_dry_run_only_counts(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    await fail_all(lane, 2)
    report = await lane.redrive("orders", "billing", dry_run=True)
    assert (report.messages, report.dry_run, dict(report.reasons)) == (2, True, {"broken": 2})
    assert (await described(lane, "orders", "billing")).depth == 0
    assert (await lane.redrive("orders", "billing")).messages == 2


async def test_a_filter_chooses_what_comes_back(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b"])
    await fail_all(lane, 2, reason="bug 7")
    await lane.publish("orders", b"c")
    await fail_all(lane, 1, reason="bug 8")

    assert (await lane.redrive("orders", "billing", filter="headers['sealane-dead-reason'] = 'bug 8'")).messages == 1
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"c"]
    assert (await lane.redrive("orders", "billing", messages_max=1)).messages == 1
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"a"]


async def test_offsets_choose_what_comes_back_once(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c", b"d"])
    await fail_all(lane, 4)
    some = {0: BitMap64([1, 3, 99])}
    assert (await lane.redrive("orders", "billing", offsets=some, dry_run=True)).messages == 2
    assert (await lane.redrive("orders", "billing", offsets=some)).messages == 2
    assert (await lane.redrive("orders", "billing", offsets=some)).messages == 0
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"b", b"d"]
    assert (await lane.redrive("orders", "billing", offsets={0: BitMap64()})).messages == 0
    assert (await lane.redrive("orders", "billing", offsets={0: BitMap64([0, 1])}, messages_max=5)).messages == 1
    with pytest.raises(sealane.InvalidArgument, match="no partition 7"):
        await lane.redrive("orders", "billing", offsets={7: BitMap64([0])})


async def test_a_rate_slows_it_down(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"%d" % index for index in range(5)])
    await fail_all(lane, 5)
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert (await lane.redrive("orders", "billing", rate=50)).messages == 5
    assert loop.time() - start >= 0.08
    assert len(await take_payloads(lane.consume("orders", "billing"), 5)) == 5
    with pytest.raises(sealane.InvalidArgument):
        await lane.redrive("orders", "billing", rate=0)


async def test_what_came_back_can_die_again(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"poison")
    for _ in range(3):
        await fail_all(lane, 1)
        assert (await lane.redrive("orders", "billing")).messages == 1
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"poison"]


async def test_a_redrive_survives_a_restart(directory: Broker) -> None:
    await directory.lane.publish("orders", b"poison")
    await fail_all(directory.lane, 1)
    await directory.lane.redrive("orders", "billing")
    lane = await directory.restart()
    assert (await lane.redrive("orders", "billing")).messages == 0
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"poison"]


async def test_nothing_to_drive_back_is_an_error_that_says_so(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"fine")
    with pytest.raises(sealane.TopicNotFound, match="has no dead letters"):
        await lane.redrive("orders", "billing")
    with pytest.raises(sealane.TopicNotFound):
        await lane.redrive("other", "billing")


async def test_dead_letters_are_not_driven_to_a_subscription_that_is_gone(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"poison")
    await fail_all(lane, 1)
    await lane.unsubscribe("orders", "billing")
    with pytest.raises(sealane.SubscriptionNotFound):
        await lane.redrive("orders", "billing")
    async with lane.consume("orders", "billing", start="latest") as messages:
        assert (await lane.redrive("orders", "billing")).messages == 1
        assert await take_payloads(messages, 1) == [b"poison"]
