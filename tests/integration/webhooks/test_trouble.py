"""Receivers that fail, are slow, say too much or point elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sealane.delivery.config import SubscriptionConfig
from sealane.errors import InvalidSettings
from sealane.node import NodeSettings
from sealane.node.session import Session
from sealane.push.intake import REQUEST_BYTES_MAX
from sealane.push.sender import RESPONSE_BYTES_MAX
from sealane.security.principals import ADMIN
from tests.certificates import TestAuthority
from tests.integration.webhooks.pushing import FAST, pushing
from tests.integration.webhooks.receiver import OK, Received, receiver, status
from tests.unit.node.running_node import DEADLINE_SECONDS, until


async def test_the_breaker_opens_after_failures_in_a_row_and_counts_no_attempt_while_it_is_open(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, open_seconds=3_600, open_seconds_max=3_600) as run:
        hook.answer = lambda received: status(500)
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        shown = await run.shows(lambda each: each["breaker"] == "open")
        assert (shown["failures"], shown["state"]) == (5, "on")
        assert 3_000 < shown["retry_seconds"] <= 3_600
        assert shown["last"]["outcome"] == "5xx"
        await until(lambda: not run.node.topic("orders").attachments)
        await run.lane.publish("orders", b"2")
        (subscription,) = (await run.lane.describe_topic("orders")).subscriptions
        assert (subscription.depth, subscription.leased, subscription.consumers) == (2, 0, 0)
        assert len(hook.received) == 5
        # Other consumers of the subscription get what it does not take.
        async for message in run.lane.consume("orders", "billing"):
            assert message.attempt == (6 if message.payload == b"1" else 1)
            break


async def test_the_breaker_tries_one_message_and_closes_when_that_is_accepted(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, failures_max=2) as run:
        hook.answer = lambda received: status(500 if len(hook.received) <= 4 else 200)
        await run.lane.publish_many("orders", [b"%d" % number for number in range(10)])
        await run.create(hook.url(), messages_max=10)
        await run.until_settled()
        shown = await run.ask("show")
    assert (shown["breaker"], shown["failures"], shown["retry_seconds"]) == ("closed", 0, 0)
    sizes = [len(each.payloads) for each in hook.received]
    assert sizes[:2] == [10, 10]
    assert sizes[2:5] == [1, 1, 1]
    assert sum(sizes[4:]) == 10


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, receiver(None) as inside, pushing(tmp_path, plain_http=True) as run:
        hook.answer = lambda received: status(307, f"location: {inside.url('127.0.0.1')}")
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await hook.count(2)
        shown = await run.ask("show")
    assert "redirects are not followed" in shown["last"]["reason"]
    assert inside.connections == 0


async def test_a_receiver_that_is_too_slow_is_given_up(tmp_path: Path) -> None:
    silence = asyncio.Event()

    async def never(received: Received) -> bytes:
        await silence.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = never
        await run.create(hook.url(), timeout_seconds=1)
        await run.lane.publish("orders", b"1")
        await hook.count(2)
        shown = await run.ask("show")
        silence.set()
    assert shown["last"]["outcome"] == "timeout"
    assert shown["last"]["reason"] == "the receiver did not answer within 1 s"
    assert hook.received[1].json["messages"][0]["attempt"] == 2


async def test_messages_stay_leased_for_as_long_as_the_receiver_may_take(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def late(received: Received) -> bytes:
        await release.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = late
        # The subscription's own lease would be over long before.
        config = SubscriptionConfig(lease_seconds=0.1)
        await Session(run.node, ADMIN).subscribe("orders", "billing", config, "earliest")
        await run.create(hook.url(), timeout_seconds=30, retry=None)
        await run.lane.publish("orders", b"1")
        await hook.count(1)
        subscription = run.node.topic("orders").owners[0].core.subscriptions["billing"]
        (lease,) = subscription.leases.by_id.values()
        assert lease.deadline_us - run.node.surroundings.clock() > 30e6
        release.set()
        await run.until_settled()
    assert len(hook.received) == 1


async def test_a_huge_answer_is_dropped_and_its_status_counts(tmp_path: Path) -> None:
    huge = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n" + bytes(4 * RESPONSE_BYTES_MAX)
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = lambda received: huge
        await run.create(hook.url())
        for number in range(2):
            await run.lane.publish("orders", b"%d" % number)
        await run.until_settled()
    assert hook.payloads == ["0", "1"]
    assert hook.connections == 2  # The first one could not be used again.


async def test_an_answer_that_is_no_http_fails_and_harms_nobody(tmp_path: Path) -> None:
    answers = [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, b""]
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = lambda received: answers.pop() or status(500, "connection: close") if answers else OK
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await run.until_settled()
    assert len(hook.received) == 4


async def test_a_receiver_whose_certificate_is_not_trusted_gets_nothing(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        (tmp_path / "ca.crt").write_text(TestAuthority("Another").pem)
        async with pushing(tmp_path) as run:
            await run.create(hook.url())
            await run.lane.publish("orders", b"1")
            shown = await run.shows(lambda each: each["last"] is not None)
    assert shown["last"]["outcome"] == "unreachable"
    assert "CERTIFICATE_VERIFY_FAILED" in shown["last"]["reason"]
    assert hook.received == []


async def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    async with receiver(tmp_path, names=("other.example",)) as hook, pushing(tmp_path) as run:
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        shown = await run.shows(lambda each: each["last"] is not None)
    assert "hooks.example" in shown["last"]["reason"]
    assert hook.received == []


async def test_nobody_at_home_is_a_failed_attempt(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        url = hook.url()
    async with pushing(tmp_path, failures_max=100) as run:
        await run.create(url, retry={**FAST, "attempts_max": 2})
        await run.lane.publish("orders", b"1")
        await until(lambda: "default/orders.billing.dead" in run.node.topics)
        shown = await run.ask("show")
    assert shown["last"]["outcome"] == "unreachable"


async def test_a_file_of_authorities_that_has_none_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing in here")
    with pytest.raises(InvalidSettings, match=r"webhooks\.ca"):
        async with pushing(tmp_path):
            pass


async def test_a_stop_lets_the_request_under_way_come_to_its_end(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def late(received: Received) -> bytes:
        await release.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = late
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await run.lane.publish("orders", b"2")
        await hook.count(1)
        draining = asyncio.ensure_future(run.pusher.drain(DEADLINE_SECONDS))
        release.set()
        await draining
        assert await run.depth() == 1
    assert hook.payloads == ["1"]


async def test_a_stop_that_cannot_wait_gives_messages_back_without_counting_an_attempt(tmp_path: Path) -> None:
    silence = asyncio.Event()

    async def never(received: Received) -> bytes:
        await silence.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = never
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await hook.count(1)
        await run.pusher.drain(0)
        await run.pusher.close()
        async for message in run.lane.consume("orders", "billing"):
            assert message.attempt == 1
            break
        silence.set()


async def test_a_seek_while_a_request_is_under_way_is_what_counts(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def late(received: Received) -> bytes:
        await release.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        hook.answer = late
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        await hook.count(1)
        await run.lane.seek("orders", "billing", "earliest")
        release.set()
        await hook.count(2)
        await run.until_settled()
    assert hook.payloads == ["1", "1"]


async def test_large_messages_are_spread_over_requests(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        await run.lane.create_topic("orders", partitions=8)
        for number in range(16):
            await run.lane.publish("orders", b"x" * 1_000_000, key=b"%d" % number)
        await run.create(hook.url(), messages_max=100)
        await hook.until(lambda: len(hook.payloads) == 16)
        await run.until_settled()
    assert len(hook.received) > 2
    delivery_bytes = NodeSettings().delivery_bytes_max + 1_100_000
    assert max(len(each.body) for each in hook.received) < REQUEST_BYTES_MAX + delivery_bytes
