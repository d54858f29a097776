"""Messages are pushed under the grants of whoever made the webhook, and no longer than these allow it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sealane.client import Lane
from sealane.client.embedded import InProcessBroker
from sealane.errors import Forbidden
from sealane.security.grants.grants import Grant
from sealane.security.principals import Principal
from tests.integration.webhooks.pushing import FAST, Pushing, pushing
from tests.integration.webhooks.receiver import Receiver, receiver
from tests.unit.node.running_node import until

CONSUME = Grant("anna", "consume", "default/orders")
MANAGE = Grant("anna", "manage", "default/orders")


@asynccontextmanager
async def as_anna(run: Pushing, allows: tuple[tuple[str, str], ...] = ()) -> AsyncIterator[Lane]:
    """Who comes in by an API key, and may do what it takes."""
    for grant in (CONSUME, MANAGE):
        await run.node.identity.grants.add(grant)
    key, _ = await run.node.identity.api_keys.create("anna", roles=[], allows=allows)  # type: ignore[arg-type]
    async with Lane(InProcessBroker(run.node, run.node.identity.api_keys.principal(key))) as lane:
        yield lane


async def create(lane: Lane, hook: Receiver) -> None:
    await lane.administer("webhook.create", topic="orders", subscription="billing", url=hook.url(), retry=FAST)


async def pushed(run: Pushing, hook: Receiver, payload: str) -> None:
    await run.lane.publish("orders", payload.encode())
    await hook.until(lambda: payload in hook.payloads)
    await run.until_settled()


async def test_a_grant_that_is_removed_stops_it_and_it_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run, as_anna(run) as anna:
        await create(anna, hook)
        await pushed(run, hook, "1")
        await run.node.identity.grants.remove(CONSUME)
        shown = await run.ask("show")
        assert (shown["state"], shown["owner"]) == ("broken", "anna")
        assert shown["reason"] == "'anna' may not consume 'default/orders': it has no grant for that"
        await until(lambda: not run.node.topic("orders").attachments)
        await run.lane.publish("orders", b"2")
        await run.node.identity.grants.add(CONSUME)
        run.pusher._changed("default/orders:billing")  # It would look by itself, some seconds later.
        await hook.until(lambda: "2" in hook.payloads)
        assert (await run.ask("show"))["state"] == "on"
    assert hook.payloads == ["1", "2"]
    assert all(each.json["messages"][0]["attempt"] == 1 for each in hook.received)


async def test_an_account_that_is_disabled_gets_nothing_sent_even_what_comes_in_that_moment(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run, as_anna(run) as anna:
        await create(anna, hook)
        await pushed(run, hook, "1")
        await run.lane.administer("account.disable", name="anna")
        await run.lane.publish("orders", b"2")
        await until(lambda: not run.node.topic("orders").attachments)
        shown = await run.ask("show")
        assert shown["state"] == "broken"
        assert "may not come in any more" in shown["reason"]
        # Whoever resumes it takes it over.
        assert (await run.ask("resume"))["owner"] == "admin"
        await hook.until(lambda: "2" in hook.payloads)
    assert hook.payloads == ["1", "2"]


async def test_a_key_that_is_revoked_ends_what_was_made_by_it(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run, as_anna(run) as anna:
        await create(anna, hook)
        await pushed(run, hook, "1")
        (key,) = await run.lane.administer("key.list")
        await run.lane.administer("key.revoke", id=key["id"])
        assert (await run.ask("show"))["state"] == "broken"
        await run.lane.publish("orders", b"2")
        await until(lambda: not run.node.topic("orders").attachments)
    assert hook.payloads == ["1"]


async def test_a_key_that_allows_less_makes_a_webhook_that_may_no_more(tmp_path: Path) -> None:
    allows = (("manage", "~/*"), ("consume", "~/other"))
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run, as_anna(run, allows) as anna:
        with pytest.raises(Forbidden, match="may not consume 'default/orders'"):
            await create(anna, hook)


async def test_roles_count_as_they_are_now(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        key, _ = await run.node.identity.api_keys.create("bert", roles=["consumer", "manager"])
        async with Lane(InProcessBroker(run.node, run.node.identity.api_keys.principal(key))) as bert:
            await create(bert, hook)
        await pushed(run, hook, "1")
        await run.lane.administer("account.roles", name="bert", roles=["manager"])
        assert (await run.ask("show"))["state"] == "broken"
        await run.lane.publish("orders", b"2")
        await until(lambda: not run.node.topic("orders").attachments)
        await run.lane.administer("account.roles", name="bert", roles=["consumer"])
        run.pusher._changed("default/orders:billing")  # It would look by itself, some seconds later.
        await hook.until(lambda: "2" in hook.payloads)
    assert hook.payloads == ["1", "2"]


@pytest.mark.parametrize("missing", [CONSUME, MANAGE])
async def test_it_takes_both_managing_and_consuming(tmp_path: Path, missing: Grant) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run, as_anna(run) as anna:
        await create(anna, hook)
        await run.node.identity.grants.remove(missing)
        for command in ("show", "pause", "resume", "rotate", "remove"):
            with pytest.raises(Forbidden):
                await anna.administer(f"webhook.{command}", topic="orders", subscription="billing")
        assert await anna.administer("webhook.list") == []


async def test_whoever_comes_by_a_token_of_another_issuer_makes_none(tmp_path: Path) -> None:
    stranger = Principal("external:anna", roles=frozenset({"member", "manager"}), kind="token", credential="token:1")
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        async with Lane(InProcessBroker(run.node, stranger)) as lane:
            with pytest.raises(Forbidden, match="an account of this node"):
                await create(lane, hook)
        assert "default/orders" not in run.node.topics


async def test_what_was_done_is_in_the_audit_log_without_what_is_secret(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path) as run:
        made = await run.create(hook.url(path="/hooks/s3cr3t-path?token=t0p"))
        again = await run.ask("rotate")
        for command in ("pause", "resume", "remove"):
            await run.ask(command)
        told = await run.lane.administer("audit.read", event="webhook")
    entries = [each for each in told["entries"] if each["outcome"] == "ok"]
    events = [each["event"].removeprefix("webhook.") for each in entries]
    assert events == ["create", "rotate", "pause", "resume", "remove"]
    assert entries[0]["resource"] == "default/orders"
    assert entries[0]["details"] == {"subscription": "billing", "host": f"hooks.example:{hook.port}"}
    for secret in (made["secret"], again["secret"], "s3cr3t-path", "t0p"):
        assert secret not in str(told)
