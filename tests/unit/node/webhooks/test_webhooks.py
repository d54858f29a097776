"""All webhooks of a node: how many there may be, and what they are between being made and removed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sealane.errors import InvalidArgument, WebhookRefused
from sealane.node import NodeSettings
from sealane.node.topics import Topic
from sealane.node.webhooks.records import Owner, Webhook
from sealane.node.webhooks.settings import WebhookSettings
from sealane.node.webhooks.webhooks import WEBHOOKS_MAX
from sealane.security.principals import ADMIN
from tests.unit.node.running_node import Running, running_node

URL = "https://hooks.example.com/orders"


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    settings = NodeSettings(webhooks=WebhookSettings(hosts="hooks.example.com"))
    async with running_node(settings) as started:
        yield started


async def create(running: Running, subscription: str = "billing") -> Webhook:
    topic: Topic = await running.node.ensure_topic("orders")
    owner = Owner.of(ADMIN)
    made, _ = await running.node.webhooks.create(topic, subscription, URL, owner, messages_max=1, timeout_seconds=15)
    return made


async def test_a_node_has_so_many_and_no_more(running: Running) -> None:
    for number in range(WEBHOOKS_MAX):
        await create(running, f"s-{number}")
    with pytest.raises(InvalidArgument, match="this node has 1,000, which is the limit"):
        await create(running, "one-more")
    await running.node.webhooks.remove("default/orders", "s-0")
    await create(running, "one-more")


async def test_everyone_who_wants_to_know_is_told_of_each_change(running: Running) -> None:
    told: list[str] = []
    running.node.webhooks.changed.append(told.append)
    webhook = await create(running)
    await running.node.webhooks.pause("default/orders", "billing")
    await running.node.webhooks.resume("default/orders", "billing", webhook.owner)
    await running.node.webhooks.rotate("default/orders", "billing", 60)
    await running.node.webhooks.remove("default/orders", "billing")
    assert told == ["default/orders:billing"] * 5


async def test_the_secret_before_signs_until_its_time_is_over_and_a_third_ends_the_first(running: Running) -> None:
    webhooks = running.node.webhooks
    first = (await create(running)).secrets[0].value
    rotated, _ = await webhooks.rotate("default/orders", "billing", 60)
    second = rotated.secrets[0].value
    assert rotated.signing(running.clock()) == [second, first]
    running.clock.pass_seconds(60)
    assert rotated.signing(running.clock()) == [second]
    again, _ = await webhooks.rotate("default/orders", "billing", 60)
    assert again.signing(running.clock()) == [again.secrets[0].value, second]


async def test_one_that_was_changed_meanwhile_is_not_stopped_by_what_it_was_before(running: Running) -> None:
    webhooks = running.node.webhooks
    before = await create(running)
    await webhooks.pause("default/orders", "billing")
    await webhooks.stop(before, "the receiver answered 410")
    assert webhooks.get("default/orders", "billing").wanted == "paused"


async def test_http_is_refused_where_the_node_itself_speaks_tls(running: Running) -> None:
    with pytest.raises(WebhookRefused, match="sent by https"):
        running.node.webhooks.endpoint("http://hooks.example.com/")


async def test_commands_work_where_nothing_is_pushed_and_say_so(running: Running) -> None:
    await running.lane.administer("webhook.create", topic="orders", subscription="billing", url=URL)
    (told,) = await running.lane.administer("webhook.list", topic="orders")
    assert (told["state"], told["breaker"], told["last"]) == ("on", None, None)
    assert "secret" not in told
