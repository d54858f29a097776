"""A client of server-sent events, as the standard has it: what a browser's `EventSource` would make of the stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

DEADLINE_SECONDS = 30.0


@dataclass
class Event:
    name: str
    data: Any
    id: str


class EventSource:
    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()
        self.last_id = ""
        self.retry: int | None = None
        self.comments = 0

    async def next(self) -> Event | None:
        """The next event; None once the stream has ended."""
        name, data = "message", ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for line in self._lines:
                field, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if line.startswith(":"):
                    self.comments += 1
                elif field == "id":
                    self.last_id = value
                elif field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif field == "retry":
                    self.retry = int(value)
                elif not line and data:
                    return Event(name, json.loads(data), self.last_id)
        return None

    async def payloads(self, count: int) -> list[str]:
        """Of so many messages."""
        found = []
        for _ in range(count):
            event = await self.next()
            assert event is not None
            assert event.name == "message", event
            found.append(event.data["payload"])
        return found


@asynccontextmanager
async def open_events(
    http: httpx.AsyncClient, topic: str, *, last_id: str | None = None, **query: Any
) -> AsyncIterator[EventSource]:
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    async with http.stream("GET", f"/topics/{topic}/events", params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield EventSource(response)
