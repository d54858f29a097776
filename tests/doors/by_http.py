"""By HTTP, with long polling."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from sealane.delivery.config import Mode
from tests.doors.node import ManyDoors
from tests.doors.speaking import Given, Refused, Taken

TYPE_PREFIX = "urn:sealane:"


class HttpSpeaker:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        answer = await self._http.request(method, path, **more)
        if answer.is_success:
            return answer.json() if answer.content else None
        problem = answer.json()
        raise Refused(problem["type"].removeprefix(TYPE_PREFIX), problem["detail"])

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        said = {"messages": [said_of(each) for each in messages]}
        answer = await self._ask("POST", f"/topics/{topic}/messages", json=said)
        return [receipt["id"] for receipt in answer["receipts"]]

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        taken: list[Taken] = []
        while len(taken) < count:
            path = f"/topics/{topic}/subscriptions/{subscription}/messages?wait=20&max={count - len(taken)}"
            pulled = await self._ask("GET", path)
            taken += [taken_of(each, pulled["lease"]) for each in pulled["messages"]]
        return taken

    async def _settle(
        self, how: str, topic: str, subscription: str, taken: Sequence[Taken], said: dict[str, Any], *, whole: bool
    ) -> None:
        by_lease: dict[str, list[str]] = {}
        for each in taken:
            by_lease.setdefault(each.hold, []).append(each.id)
        for lease, ids in by_lease.items():
            chosen = said if whole else {"ids": ids, **said}
            await self._ask("POST", f"/topics/{topic}/subscriptions/{subscription}/leases/{lease}/{how}", json=chosen)

    async def ack(self, topic: str, subscription: str, taken: Sequence[Taken]) -> None:
        await self._settle("ack", topic, subscription, taken, {}, whole=False)

    async def nack(
        self, topic: str, subscription: str, taken: Sequence[Taken], *, delay: float | None, reason: str | None
    ) -> None:
        await self._settle("nack", topic, subscription, taken, {"delay": delay, "reason": reason}, whole=False)

    async def extend(self, topic: str, subscription: str, taken: Sequence[Taken], seconds: float) -> None:
        await self._settle("extend", topic, subscription, taken, {"seconds": seconds}, whole=True)

    async def transact(
        self, name: str, publishes: dict[str, list[Given]], acks: Sequence[tuple[str, str, Sequence[Taken]]]
    ) -> None:
        order = {
            "publishes": [
                {"topic": topic, "messages": [said_of(each) for each in messages]}
                for topic, messages in publishes.items()
            ],
            "acks": [
                {"topic": topic, "subscription": subscription, "lease": each.hold, "ids": [each.id]}
                for topic, subscription, taken in acks
                for each in taken
            ],
        }
        await self._ask("PUT", f"/transactions/{name}", json=order)


def said_of(message: Given) -> dict[str, Any]:
    said: dict[str, Any] = {"payload_base64": base64.b64encode(message.payload).decode(), "priority": message.priority}
    if message.key is not None:
        said["key_base64"] = base64.b64encode(message.key).decode()
    said |= {name: value for name in ("headers", "ttl", "delay", "id") if (value := getattr(message, name))}
    return said


def taken_of(said: dict[str, Any], hold: Any) -> Taken:
    payload, key = _bytes(said, "payload"), _bytes(said, "key")
    assert payload is not None
    return Taken(said["id"], payload, key, said["headers"], said["priority"], said["attempt"], said["offset"], hold)


def _bytes(said: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_base64" in said:
        return base64.b64decode(said[f"{name}_base64"])
    text = said.get(name)
    return None if text is None else text.encode()


@asynccontextmanager
async def by_http(doors: ManyDoors) -> AsyncIterator[HttpSpeaker]:
    base = f"http://{doors.http.address}/api/v1/domains/{doors.guest.domain}"
    async with httpx.AsyncClient(base_url=base, timeout=60, trust_env=False) as client:
        yield HttpSpeaker(client)
