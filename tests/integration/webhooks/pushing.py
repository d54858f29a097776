"""A node that pushes, in the test's own process, in memory or in a directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from sealane.client import Lane
from sealane.client.embedded import in_process
from sealane.engine import Engine
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.surroundings import of_this_machine
from sealane.node.webhooks.endpoints import Address
from sealane.node.webhooks.settings import WebhookSettings
from sealane.push.pusher import Pusher
from tests.integration.webhooks.receiver import NAME
from tests.unit.node.running_node import DEADLINE_SECONDS, until

FAST = {"kind": "fixed", "delay_seconds": 0.01, "attempts_max": 16}
"""Retries that no test has to wait for."""


class Names:
    """A name server whose mind can be changed."""

    def __init__(self, **addresses: Sequence[str]) -> None:
        self.addresses: dict[str, Sequence[str]] = {NAME: ["127.0.0.1"], **addresses}
        self.asked = 0

    async def __call__(self, name: str) -> list[Address]:
        self.asked += 1
        if name not in self.addresses:
            raise OSError(-2, "Name or service not known")
        return [ip_address(each) for each in self.addresses[name]]


@dataclass
class Pushing:
    node: Node
    lane: Lane
    pusher: Pusher
    names: Names

    async def create(self, url: str, subscription: str = "billing", **wish: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"retry": FAST, **wish}
        made: dict[str, Any] = await self.lane.administer(
            "webhook.create", topic="orders", subscription=subscription, url=url, **given
        )
        return made

    async def ask(self, command: str, subscription: str = "billing", **given: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await self.lane.administer(
            f"webhook.{command}", topic="orders", subscription=subscription, **given
        )
        return answer

    async def shows(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What is shown of it, once that is so."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition(shown := await self.ask("show")):  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.005)
        return shown

    async def depth(self, subscription: str = "billing") -> int:
        described = await self.lane.describe_topic("orders")
        return next(each.depth for each in described.subscriptions if each.name == subscription)

    async def until_settled(self, subscription: str = "billing") -> None:
        owners = self.node.topic("orders").owners
        await until(
            lambda: not sum(owner.core.subscriptions[subscription].depth(owner.core.visible) for owner in owners)
        )


@asynccontextmanager
async def pushing(
    directory: Path,
    *,
    stored: bool = False,
    hosts: str = f"{NAME}, 127.0.0.0/8",
    plain_http: bool = False,
    names: Names | None = None,
    **settings: Any,
) -> AsyncIterator[Pushing]:
    """Trusts `directory`/ca.crt, if there is one; `stored`: in `directory`/data, and otherwise in memory."""
    ca = directory / "ca.crt"
    webhooks = WebhookSettings(
        **{"hosts": hosts, "ca": str(ca) if ca.exists() else None, "open_seconds": 0.05, "open_seconds_max": 0.2}
        | settings
    )
    surroundings = of_this_machine()
    engine: Engine = MemoryEngine(surroundings.clock)
    if stored:
        engine = await LocalEngine.start(
            DiskFiles(directory / "data"),
            settings=StorageSettings(),
            clock=surroundings.clock,
            entropy=surroundings.entropy,
        )
    node = await Node.open(engine, surroundings, NodeSettings(webhooks=webhooks), audited=True)
    names = names or Names()
    pusher = Pusher(node, plain_http=plain_http, resolve=names)
    try:
        pusher.start()
        async with in_process(node) as lane:
            yield Pushing(node, lane, pusher, names)
    finally:
        await pusher.close()
        await node.close()
    assert not node.supervisor.crashes
