"""Webhooks of a node as users run it: a process of its own, with TLS, that is stopped, killed and started again."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sealane
from sealane.client import Lane
from sealane.testing.node_process import NodeProcess
from tests.integration.server.up import sealane as run_sealane
from tests.integration.webhooks.receiver import OK, Received, Receiver, receiver
from tests.unit.node.running_node import DEADLINE_SECONDS


@asynccontextmanager
async def pushing_process(directory: Path) -> AsyncIterator[NodeProcess]:
    settings = {"webhooks.hosts": "127.0.0.0/8", "webhooks.ca": directory / "ca.crt"}
    node = NodeProcess.secure(directory / "data", settings)
    try:
        await asyncio.to_thread(node.start)
        yield node
    finally:
        await asyncio.to_thread(node.kill)


async def create(node: NodeProcess, hook: Receiver, directory: Path) -> dict[str, Any]:
    words = ("webhook", "create", "orders", "billing", hook.url("127.0.0.1"), "--json")
    done = await asyncio.to_thread(run_sealane, *words, cwd=directory, SEALANE_DATA=str(node.data))
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


async def until_settled(lane: Lane) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await lane.describe_topic("orders")).subscriptions[0].depth:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)


async def test_what_was_accepted_before_a_kill_does_not_come_again_and_what_comes_later_does(tmp_path: Path) -> None:
    async with receiver(tmp_path) as hook, pushing_process(tmp_path) as node:
        made = await create(node, hook, tmp_path)
        async with sealane.connect(profile=node.profile) as lane:
            await lane.publish("orders", b"1")
            await hook.count(1)
            await until_settled(lane)
        await asyncio.to_thread(node.kill)
        await asyncio.to_thread(node.start)
        async with sealane.connect(profile=node.profile) as lane:
            await lane.publish("orders", b"2")
            await hook.until(lambda: "2" in hook.payloads)
            await until_settled(lane)
            shown = await lane.administer("webhook.show", topic="orders", subscription="billing")
    assert hook.payloads == ["1", "2"]
    assert (shown["state"], shown["breaker"], shown["last"]["outcome"]) == ("on", "closed", "2xx")
    log = node.log_file.read_text()
    assert made["secret"] not in log
    assert "a task crashed" not in log


async def test_a_stop_waits_for_the_answer_that_is_under_way(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def late(received: Received) -> bytes:
        await release.wait()
        return OK

    async with receiver(tmp_path) as hook, pushing_process(tmp_path) as node:
        hook.answer = late
        await create(node, hook, tmp_path)
        async with sealane.connect(profile=node.profile) as lane:
            await lane.publish("orders", b"1")
            await lane.publish("orders", b"2")
            await hook.count(1)
        await asyncio.to_thread(node.send, signal.SIGTERM)
        release.set()
        assert await asyncio.to_thread(node.wait) == 0
        await asyncio.to_thread(node.start)
        await hook.until(lambda: "2" in hook.payloads)
    assert hook.payloads == ["1", "2"]
