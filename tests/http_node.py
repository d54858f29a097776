"""A node behind its http door in the test's own process, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.security.introductions import Authenticate
from tests.native_node import native_node

ARROW = "application/vnd.apache.arrow.stream"


class HttpNode:
    """`http` asks below the domain `default`; `url` is for `sealane.connect`."""

    def __init__(self, node: Node, door: HttpDoor, url: str, http: httpx.AsyncClient) -> None:
        self.node = node
        self.door = door
        self.url = url
        self.http = http

    async def publish(self, topic: str, *payloads: str, **of_each: Any) -> list[dict[str, Any]]:
        body = {"messages": [{"payload": payload, **of_each} for payload in payloads]}
        return await self.well("POST", f"/topics/{topic}/messages", json=body)

    async def pull(self, topic: str, subscription: str = "s", **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = await self.well(
            "GET", f"/topics/{topic}/subscriptions/{subscription}/messages", params={"wait": 20, **query}
        )
        return found

    async def settle(self, topic: str, lease: str, how: str, subscription: str = "s", **said: Any) -> httpx.Response:
        return await self.http.post(f"/topics/{topic}/subscriptions/{subscription}/leases/{lease}/{how}", json=said)

    async def well(self, method: str, path: str, **more: Any) -> Any:
        """The answer to a request that must go well."""
        answer = await self.http.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


@asynccontextmanager
async def http_node(
    path: Path | None = None,
    *,
    settings: NodeSettings | None = None,
    door: HttpDoorSettings | None = None,
    authenticate: Authenticate | None = everyone_is_admin,
) -> AsyncIterator[HttpNode]:
    async with native_node(path, settings=settings, authenticate=authenticate) as native:
        watched = Watched(lambda: True, list, lambda: (b"", "text/plain"))
        http_door = HttpDoor(door or HttpDoorSettings(port=0), watched)
        try:
            await http_door.start()
            http_door.let_in(Gate(native.node, authenticate or native.node.identity.authentication.authenticate))
            base = f"http://{http_door.address}/api/v1/domains/default"
            async with asyncio.timeout(120), httpx.AsyncClient(base_url=base, timeout=60, trust_env=False) as client:
                yield HttpNode(native.node, http_door, native.url, client)
        finally:
            await http_door.close()
