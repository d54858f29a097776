"""Webhooks outlive the node: what was accepted does not come again, and the rest does."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.node.surroundings import of_this_machine
from tests.integration.webhooks.pushing import pushing
from tests.integration.webhooks.receiver import OK, Received, receiver, status
from tests.integration.webhooks.test_delivery import verified


async def test_what_was_accepted_does_not_come_again_after_a_restart_and_the_rest_does(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        async with pushing(tmp_path, stored=True) as run:
            made = await run.create(hook.url(), messages_max=10)
            await run.lane.publish_many("orders", [b"%d" % number for number in range(30)])
            await run.until_settled()
            await run.ask("pause")
            await run.lane.publish("orders", b"later")
        assert len(hook.payloads) == 30
        async with pushing(tmp_path, stored=True) as run:
            assert (await run.ask("show"))["state"] == "paused"
            await run.ask("resume")
            await run.until_settled()
        async with pushing(tmp_path, stored=True) as run:
            await run.lane.publish("orders", b"last")
            await run.until_settled()
    assert hook.payloads == [*(str(number) for number in range(30)), "later", "last"]
    assert all(verified(made["secret"], each) for each in hook.received)


async def test_a_message_that_was_under_way_when_the_node_stopped_comes_again_as_the_same_attempt(
    tmp_path: Path,
) -> None:
    silence = asyncio.Event()

    async def never(received: Received) -> bytes:
        await silence.wait()
        return OK

    async with receiver(tmp_path) as hook:
        hook.answer = never
        async with pushing(tmp_path, stored=True) as run:
            await run.create(hook.url())
            await run.lane.publish("orders", b"1")
            await hook.count(1)
        hook.answer = lambda received: OK
        async with pushing(tmp_path, stored=True) as run:
            await run.until_settled()
        silence.set()
    assert [each.json["messages"][0]["attempt"] for each in hook.received] == [1, 1]
    assert len({each.headers["webhook-id"] for each in hook.received}) == 1


async def test_a_receiver_that_was_gone_is_not_asked_again_after_a_restart(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        hook.answer = lambda received: status(410)
        async with pushing(tmp_path, stored=True) as run:
            await run.create(hook.url())
            await run.lane.publish("orders", b"1")
            await run.shows(lambda each: each["state"] == "broken")
        async with pushing(tmp_path, stored=True) as run:
            shown = await run.ask("show")
            assert shown["state"] == "broken"
            assert "410" in shown["reason"]
            assert not run.node.topic("orders").attachments
    assert len(hook.received) == 1


async def test_a_host_that_is_no_longer_listed_is_sent_nothing(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        async with pushing(tmp_path, stored=True) as run:
            await run.create(hook.url())
        async with pushing(tmp_path, stored=True, hosts="other.example") as run:
            await run.lane.publish("orders", b"1")
            shown = await run.ask("show")
            assert shown["state"] == "broken"
            assert "webhooks.hosts" in shown["reason"]
        assert hook.received == []
        # Listed again, it goes on by itself.
        async with pushing(tmp_path, stored=True) as run:
            await run.until_settled()
    assert hook.payloads == ["1"]


async def test_secrets_and_urls_are_sealed_on_disk(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing(tmp_path, stored=True) as run:
        made = await run.create(hook.url(path="/s3cr3t-path"))
        (webhook,) = run.node.webhooks.all()
    written = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    for secret in (webhook.secrets[0].value, made["secret"].encode(), b"s3cr3t-path"):
        assert secret not in written


async def test_a_webhook_whose_topic_went_while_the_node_was_down_is_forgotten(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook:
        async with pushing(tmp_path, stored=True) as run:
            await run.create(hook.url())
        surroundings = of_this_machine()
        engine = await LocalEngine.start(
            DiskFiles(tmp_path / "data"),
            settings=StorageSettings(),
            clock=surroundings.clock,
            entropy=surroundings.entropy,
        )
        # As a crash leaves it, between deleting the topic and its webhooks.
        ((key, value),) = [each for each in await engine.scan("topic/default/") if each[0].endswith("/orders")]
        await engine.delete(key, expected=value.version)
        await engine.close()
        async with pushing(tmp_path, stored=True) as run:
            assert await run.lane.administer("webhook.list") == []
            assert await run.node.engine.scan("webhook/") == []
