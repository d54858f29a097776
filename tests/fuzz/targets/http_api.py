"""Requests to the HTTP API of a node: method, path and query in the first line, and the JSON body behind it.

Whatever is asked, the answer is no server error, and nothing that runs inside the node fails.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.datastructures import State
from starlette.types import ASGIApp, Message

from sealane.doors.http.app import make_direct_api
from sealane.doors.http.connection import CALLERS
from sealane.doors.http.passage import with_passage
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched, Watching
from sealane.doors.known_callers import KnownCallers
from sealane.engine.memory import MemoryEngine
from sealane.node import Node
from sealane.node.gate import Gate, everyone_is_admin
from sealane.node.surroundings import of_this_machine
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

NODE_INPUTS = 1_000
"""After so many a node is given up for a fresh one: what they have published and made is in its memory."""

GONE = 0
"""What stands for a status where the client did not wait for it."""
UNDERSTOOD = (GONE, 404, 409)
"""What it speaks of may not be there, or be there already."""
STAY_SECONDS = 0.02
"""For so long a client stays that may have to wait."""

_BASE = "/api/v1/domains/default"
_WORDS = (b"/", b"?", b"&", b"=", b"%00", b"%ff", b"%2F", b"max=0", b"wait=-1", b"wait=nan", b"limit=1e9", b"orders")


def _asked(method: str, path: str, body: Any = None) -> bytes:
    return f"{method} {_BASE}{path}\n".encode() + (b"" if body is None else json.dumps(body).encode())


SEEDS = (
    _asked("PUT", "/topics/orders", {"partitions": 2, "retention_seconds": 60.0, "when_full": "refuse"}),
    _asked("PATCH", "/topics/orders", {"messages_max": 10}),
    _asked("POST", "/topics/orders/messages", {"payload": "hello", "key": "42", "headers": {"a": "b"}, "ttl": 60}),
    _asked(
        "PUT", "/topics/orders/subscriptions/s", {"mode": "queue", "filter": "priority > 5", "start": {"at": "latest"}}
    ),
    _asked("GET", "/topics/orders/subscriptions/s/messages?max=10&wait=0"),
    _asked("POST", "/topics/orders/subscriptions/s/seek", {"offsets": {"0": 1}}),
    _asked("POST", "/topics/orders/subscriptions/s/seek", {"time": "2026-05-04T10:00:00Z"}),
    _asked("POST", "/topics/orders/subscriptions/s/dead-letters/redrive", {"filter": "key = 'x'", "dry_run": True}),
    _asked("GET", "/topics/orders/subscriptions/s/dead-letters?limit=5"),
    _asked("GET", "/topics/orders/partitions/0/messages?offset=0"),
    _asked("PUT", "/exchanges/events", {"kind": "topic"}),
    _asked("POST", "/exchanges/events/bindings", {"topic": "orders", "key": "a.#"}),
    _asked("PUT", "/transactions/t1", {"publishes": [{"topic": "orders", "messages": [{"payload": "x"}]}], "acks": []}),
    _asked("POST", "/schemas/typed", {"format": "json", "schema": '{"type": "object"}', "compatibility": "full"}),
    _asked("GET", "/topics/orders"),
)

T = TypeVar("T")


class _Running:
    """A node in memory behind the routes of its door, on a loop of its own; no socket is needed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.failures: list[BaseException] = []
        self._loop.set_exception_handler(lambda _, context: self.failures.append(_error_in(context)))
        self._node: Node | None = None
        self._asked = 0

    def run(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)

    def app(self) -> ASGIApp:
        if self._node is None or self._asked >= NODE_INPUTS:
            self.run(self._begin())
            self._asked = 0
        self._asked += 1
        return self._app

    async def _begin(self) -> None:
        if self._node is not None:
            await self._node.close()
        surroundings = of_this_machine()
        self._node = await Node.open(MemoryEngine(surroundings.clock), surroundings)
        self._node.supervisor.on_crash = lambda task, error: self.failures.append(error)
        watching = Watching(Watched(lambda: True, list, lambda: (b"", "text/plain")), metrics_public=True)
        state = State({"gate": Gate(self._node, everyone_is_admin), "draining": self._loop.create_future()})
        api = make_direct_api(watching, state)
        self._app = with_passage(api, HttpDoorSettings(body_bytes_max=64 << 10), loopback_only=False)
        for seed in SEEDS:
            await _answer(self._app, seed)


def _error_in(context: dict[str, Any]) -> BaseException:
    error = context.get("exception")
    return error if isinstance(error, BaseException) else AssertionError(context["message"])


_running = _Running()


def check(data: bytes) -> bool:
    line = data.partition(b"\n")[0]
    if not line.isascii() or not line.decode().isprintable():
        return False  # No parser of HTTP lets it pass.
    status = _running.run(_answer(_running.app(), data))
    if _running.failures:
        raise _running.failures.pop()
    assert status < 500 or status == 503, f"answered with {status}"
    return status < 400 or status in UNDERSTOOD


async def _answer(app: ASGIApp, data: bytes) -> int:
    line, _, body = data.partition(b"\n")
    method, _, target = line.decode("latin-1").partition(" ")
    path, _, query = target.partition("?")
    statuses: list[int] = []
    pieces = [body]

    async def receive() -> Message:
        if not pieces:
            # Whoever has said all goes soon: nobody waits for messages to come.
            await asyncio.sleep(STAY_SECONDS)
            statuses.append(GONE)
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.upper(),
        "scheme": "http",
        "path": unquote_to_bytes(path.encode("latin-1")).decode("utf-8", "replace"),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
        "state": {CALLERS: KnownCallers()},
    }
    await app(scope, receive, send)
    return statuses[0]


_spoil_body = spoil_json()


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Mostly the body; sometimes the line before it."""
    line, newline, body = data.partition(b"\n")
    if choose.random() < 0.25 or not body:
        line = mutate(line, choose, words=_WORDS).replace(b"\n", b"")
    if body and choose.random() < 0.9:
        body = _spoil_body(body, choose)
    return line + newline + body


TARGET = Target("http_api", SEEDS, check, spoil)
