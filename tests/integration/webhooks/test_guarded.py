"""Nobody can aim a webhook at the inside of a network: hosts are listed, and addresses looked at when they are used."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from sealane.errors import InvalidArgument, ModeConflict, WebhookRefused
from sealane.node.webhooks.webhooks import KEEP_SECONDS_MAX, MESSAGES_MAX, TIMEOUT_SECONDS_MAX
from tests.integration.webhooks.pushing import Names, pushing
from tests.integration.webhooks.receiver import NAME, receiver


async def test_without_hosts_webhooks_are_off_and_the_error_says_what_to_change(tmp_path: Path) -> None:
    async with pushing(tmp_path, hosts=" ") as run:
        with pytest.raises(WebhookRefused, match=r"webhooks are off on this node; list where they may go in webhooks"):
            await run.create("https://hooks.example/")
        assert "default/orders" not in run.node.topics


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "https://hooks.example.evil.example/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://localhost/",
        "http://hooks.example/",
        "http://127.0.0.1/",
    ],
)
async def test_a_host_that_is_not_listed_and_plain_http_are_refused_when_it_is_made(tmp_path: Path, url: str) -> None:
    async with pushing(tmp_path, hosts=NAME) as run:
        with pytest.raises(WebhookRefused):
            await run.create(url)
        assert await run.lane.administer("webhook.list") == []


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0"])
async def test_a_listed_name_that_leads_inside_is_not_connected_to(tmp_path: Path, address: str) -> None:
    names = Names(**{NAME: [address]})
    async with receiver(tmp_path) as hook, pushing(tmp_path, hosts=NAME, names=names) as run:
        await run.create(hook.url())
        await run.lane.publish("orders", b"1")
        shown = await run.shows(lambda each: each["last"] is not None)
    assert shown["last"]["outcome"] == "refused"
    assert f"its address {ip_address(address)} is not a public one" in shown["last"]["reason"]
    assert hook.connections == 0


async def test_a_name_that_comes_to_lead_inside_after_it_was_checked_is_not_connected_to(tmp_path: Path) -> None:
    """What is called rebinding: the name server answers with another address each time."""
    names = Names()
    async with receiver(tmp_path) as hook, pushing(tmp_path, hosts=f"{NAME}, 127.0.0.1", names=names) as run:
        await run.create(hook.url())
        names.addresses[NAME] = ["127.0.0.2"]
        await run.lane.publish("orders", b"1")
        shown = await run.shows(lambda each: each["last"] is not None)
        assert shown["last"]["outcome"] == "refused"
        assert hook.connections == 0
        names.addresses[NAME] = ["127.0.0.1"]
        await run.until_settled()
    assert hook.connections == 1


async def test_each_connection_asks_for_the_address_once_and_uses_that_one(tmp_path: Path) -> None:
    names = Names()
    async with receiver(tmp_path) as hook, pushing(tmp_path, names=names) as run:
        await run.create(hook.url())
        for number in range(3):
            await run.lane.publish("orders", b"%d" % number)
        await hook.count(3)
    assert (names.asked, hook.connections) == (1, 1)


async def test_a_listed_network_is_reached_by_its_addresses(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, hosts="127.0.0.0/8") as run:
        await run.create(hook.url("127.0.0.1"))
        await run.lane.publish("orders", b"1")
        await hook.count(1)
        with pytest.raises(WebhookRefused, match="not among the hosts"):
            await run.create(hook.url(NAME), "other")


async def test_plain_http_goes_to_this_machine_alone_and_only_where_nothing_is_encrypted(tmp_path: Path) -> None:
    names = Names(localhost=["127.0.0.1"])
    hosts = f"{NAME}, localhost, 127.0.0.0/8, 10.0.0.0/8"
    async with receiver(None) as hook:
        async with pushing(tmp_path, hosts=hosts, names=names) as secure:
            with pytest.raises(WebhookRefused, match="sent by https"):
                await secure.create(hook.url("127.0.0.1"))
        async with pushing(tmp_path, hosts=hosts, names=names, plain_http=True) as run:
            for url in ("http://hooks.example/", "http://10.0.0.1/"):
                with pytest.raises(WebhookRefused, match="sent by https"):
                    await run.create(url)
            await run.create(hook.url("localhost"))
            await run.lane.publish("orders", b"1")
            await hook.count(1)


@pytest.mark.parametrize(
    "wish",
    [
        {"messages_max": 0},
        {"messages_max": MESSAGES_MAX + 1},
        {"timeout_seconds": 0.5},
        {"timeout_seconds": TIMEOUT_SECONDS_MAX + 1},
        {"timeout_seconds": float("nan")},
        {"retry": {"attempts_max": 0}},
        {"start": "sometime"},
        {"subscription": "no such name"},
        {"secret": "whsec_mine"},
    ],
)
async def test_what_cannot_work_is_refused(tmp_path: Path, wish: dict[str, Any]) -> None:
    async with pushing(tmp_path) as run:
        given: dict[str, Any] = {"topic": "orders", "subscription": "billing", "url": "https://hooks.example/", **wish}
        with pytest.raises(Exception, match=r"refused|not in|is not an argument|Invalid enum"):
            await run.lane.administer("webhook.create", **given)
        assert await run.lane.administer("webhook.list") == []


async def test_limits_are_possible(tmp_path: Path) -> None:
    async with pushing(tmp_path) as run:
        most: dict[str, Any] = {"messages_max": MESSAGES_MAX, "timeout_seconds": TIMEOUT_SECONDS_MAX}
        made = await run.create("https://hooks.example/", **most)
        assert (made["messages_max"], made["timeout_seconds"]) == (MESSAGES_MAX, TIMEOUT_SECONDS_MAX)
        await run.ask("rotate", keep_seconds=KEEP_SECONDS_MAX)
        with pytest.raises(InvalidArgument, match="keep_seconds"):
            await run.ask("rotate", keep_seconds=KEEP_SECONDS_MAX + 1)


async def test_a_broadcast_has_no_webhook(tmp_path: Path) -> None:
    async with pushing(tmp_path) as run:
        await run.lane.publish("orders", b"1")
        async for message in run.lane.consume("orders", "billing", mode="broadcast"):
            with pytest.raises(ModeConflict, match="broadcast"):
                await run.create("https://hooks.example/")
            await message.ack()
            break
