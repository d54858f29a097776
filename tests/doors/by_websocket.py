"""By a WebSocket, in either of its formats."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import websockets

from sealane.delivery.config import Mode
from tests.doors.by_http import TYPE_PREFIX, said_of, taken_of
from tests.doors.node import ManyDoors
from tests.doors.speaking import Given, Refused, Taken
from tests.integration.http import socket_client
from tests.integration.http.socket_client import PACKED, Socket, open_socket


class WebSocketSpeaker:
    """Messages are taken by one consumer of each subscription, which is given credit for what is to be taken."""

    abilities = frozenset[str]()

    def __init__(self, socket: Socket, *, packed: bool) -> None:
        self._socket = socket
        self._packed = packed
        self._consumers: dict[tuple[str, str], int] = {}

    async def _ask(self, type: str, **said: Any) -> dict[str, Any]:
        try:
            return await self._socket.call(type, **said)
        except socket_client.Refused as refused:
            raise _refused(refused.problem) from None

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        said = [_packed(each) if self._packed else said_of(each) for each in messages]
        published = await self._ask("publish", topic=topic, messages=said)
        return [receipt["id"] for receipt in published["receipts"]]

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        consumer = self._consumers.get((topic, subscription))
        if consumer is None:
            said = {"topic": topic, "subscription": subscription, "mode": mode}
            consumer = (await self._ask("subscribe", **said))["consumer"]
            self._consumers[topic, subscription] = consumer
        await self._ask("credit", consumer=consumer, messages=count)
        return [self._taken(each, consumer) for each in await self._socket.messages(count)]

    def _taken(self, said: dict[str, Any], consumer: int) -> Taken:
        if not self._packed:
            return taken_of(said, consumer)
        fields = ("id", "payload", "key", "headers", "priority", "attempt", "offset")
        return Taken(**{name: said[name] for name in fields}, hold=consumer)

    async def ack(self, topic: str, subscription: str, taken: Sequence[Taken]) -> None:
        await self._answer("ack", taken)

    async def nack(
        self, topic: str, subscription: str, taken: Sequence[Taken], *, delay: float | None, reason: str | None
    ) -> None:
        await self._answer("nack", taken, delay=delay, reason=reason)

    async def extend(self, topic: str, subscription: str, taken: Sequence[Taken], seconds: float) -> None:
        await self._answer("extend", taken, seconds=seconds)

    async def _answer(self, how: str, taken: Sequence[Taken], **said: Any) -> None:
        [consumer] = {each.hold for each in taken}
        await self._ask(how, consumer=consumer, ids=[each.id for each in taken], **said)

    async def transact(
        self, name: str, publishes: dict[str, list[Given]], acks: Sequence[tuple[str, str, Sequence[Taken]]]
    ) -> None:
        raise NotImplementedError("a WebSocket has no transactions")


def _packed(message: Given) -> dict[str, Any]:
    fields = ("payload", "key", "headers", "priority", "ttl", "delay", "id")
    return {name: getattr(message, name) for name in fields}


def _refused(problem: dict[str, Any]) -> Refused:
    return Refused(problem["type"].removeprefix(TYPE_PREFIX), problem["detail"])


@asynccontextmanager
async def by_websocket(doors: ManyDoors, *, packed: bool = False) -> AsyncIterator[WebSocketSpeaker]:
    try:
        async with open_socket(doors.http, subprotocols=[PACKED] if packed else None) as socket:
            yield WebSocketSpeaker(socket, packed=packed)
    except websockets.InvalidStatus as refused:
        raise _refused(json.loads(refused.response.body or b"{}")) from None


by_packed_websocket = partial(by_websocket, packed=True)
