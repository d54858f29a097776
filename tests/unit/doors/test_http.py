"""The http door as its clients see it, over real sockets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.later import LaterApi
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched, Watching
from sealane.errors import InvalidArgument, PortTaken

DEADLINE_SECONDS = 30


class Node:
    """What the door is told of."""

    def __init__(self) -> None:
        self.live = True
        self.problems: list[str] = []
        self.rendered: Callable[[], tuple[bytes, str]] = lambda: (b"sealane_up 1\n", "text/plain; version=1.0.0")


class Answer:
    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@asynccontextmanager
async def opened(node: Node | None = None, **settings: Any) -> AsyncIterator[HttpDoor]:
    node = node or Node()
    watched = Watched(lambda: node.live, lambda: node.problems, lambda: node.rendered())
    door = HttpDoor(HttpDoorSettings(**{"port": 0, **settings}), watched)
    await door.start()
    try:
        yield door
    finally:
        await door.close()


async def connect(door: HttpDoor) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = door.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def send(door: HttpDoor, raw: bytes) -> bytes:
    """All that the door says to these bytes until it closes the connection."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await connect(door)
        try:
            writer.write(raw)
            return await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def send_for_ever(door: HttpDoor, first: bytes, more: bytes) -> Answer:
    """What the door says to a request that does not end, once it has had enough of it."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await connect(door)
        answer = asyncio.create_task(reader.readuntil(b"}"))
        writer.write(first)
        while not answer.done():
            with suppress(ConnectionError):
                await writer.drain()
            writer.write(more)
            await asyncio.wait([answer], timeout=0.01)
        writer.transport.abort()
        return Answer(await answer)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - the door has no event for it
            await asyncio.sleep(0.005)


async def get(door: HttpDoor, path: str, *, method: str = "GET", headers: str = "", body: bytes = b"") -> Answer:
    length = f"content-length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{length}{headers}\r\n"
    return Answer(await send(door, head.encode() + body))


async def test_a_node_that_serves_is_alive_and_ready() -> None:
    async with opened() as door:
        assert (await get(door, "/healthz")).json == {"status": "alive"}
        assert (await get(door, "/ready")).json == {"status": "ready"}


def test_whoever_only_watches_a_node_does_not_have_it_load_its_api() -> None:
    """The program is that of a node; what it imports at its start is what every node takes to start."""
    program = "import sealane.server.running, sys; print(*{'fastapi', 'pydantic', 'grpc'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


async def test_the_api_that_several_ask_for_at_once_is_loaded_once() -> None:
    loaded: list[State] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])

    def load(state: State) -> ASGIApp:
        loaded.append(state)
        return api

    async def nothing() -> Message:
        raise AssertionError("nobody reads what was not sent")

    async def nowhere(message: Message) -> None:
        answered.append(message)

    asked: list[str] = []
    answered: list[Message] = []
    node = Node()
    watched = Watched(lambda: node.live, lambda: node.problems, lambda: node.rendered())
    later = LaterApi(Watching(watched, metrics_public=True), load)
    await later({"type": "http", "method": "GET", "path": "/ready", "headers": []}, nothing, nowhere)
    assert (answered[0]["status"], loaded) == (200, [])
    scopes = [{"type": "http", "method": "GET", "path": f"/api/{number}", "headers": []} for number in range(3)]
    await asyncio.gather(*(later(scope, nothing, nowhere) for scope in scopes))
    assert sorted(asked) == ["/api/0", "/api/1", "/api/2"]
    assert loaded == [later.state]


async def test_a_node_that_cannot_go_on_is_not_alive() -> None:
    node = Node()
    node.live = False
    async with opened(node) as door:
        assert (await get(door, "/healthz")).status == 503


async def test_a_node_that_does_not_serve_says_why() -> None:
    node = Node()
    node.problems = ["storage failed: no space", "draining"]
    async with opened(node) as door:
        ready = await get(door, "/ready")
        alive = await get(door, "/healthz")

    assert ready.status == 503
    assert ready.headers["content-type"] == "application/problem+json"
    assert ready.json["problems"] == node.problems
    assert ready.json["detail"] == "storage failed: no space; draining"
    assert alive.status == 200


async def test_metrics_are_given_as_they_were_rendered() -> None:
    async with opened() as door:
        answer = await get(door, "/metrics")

    assert answer.body == b"sealane_up 1\n"
    assert answer.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


async def test_the_root_is_a_page_for_people_and_links_for_programs() -> None:
    async with opened() as door:
        page = await get(door, "/", headers="accept: text/html\r\n")
        links = await get(door, "/")

    assert page.headers["content-type"].startswith("text/html")
    assert b"/ready" in page.body
    assert links.json["links"]["metrics"] == "/metrics"


async def test_errors_are_problem_documents() -> None:
    async with opened() as door:
        missing = await get(door, "/nowhere")
        wrong = await get(door, "/ready", method="POST")

    assert (missing.status, missing.json["detail"]) == (404, "there is nothing at /nowhere; /docs lists what there is")
    assert missing.headers["content-type"] == "application/problem+json"
    assert (wrong.status, wrong.json["title"]) == (405, "Method Not Allowed")
    assert wrong.headers["allow"] == "GET"


async def test_a_failure_inside_is_a_problem_that_tells_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()

    def fail() -> tuple[bytes, str]:
        raise RuntimeError("the master key is swordfish")

    node.rendered = fail
    async with opened(node) as door:
        answer = await get(door, "/metrics")
        after = await get(door, "/healthz")

    assert answer.status == 500
    assert b"swordfish" not in answer.body
    assert answer.json["title"] == "Internal Server Error"
    assert after.status == 200
    assert "RuntimeError" in caplog.text


async def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_refused() -> None:
    async with opened(body_bytes_max=1_000) as door:
        fits = await get(door, "/ready", body=b"x" * 1_000)
        larger = await get(door, "/ready", body=b"x" * 1_001)

    assert fits.status == 200
    assert larger.status == 413
    assert "doors.http.body_bytes_max" in larger.json["detail"]


async def test_a_head_that_is_too_large_is_refused_in_one_piece_or_in_many() -> None:
    async with opened(head_bytes_max=2_000) as door:
        fits = await get(door, "/ready", headers=f"x: {'y' * 1_000}\r\n")
        larger = await get(door, "/ready", headers=f"x: {'y' * 2_000}\r\n")
        endless = await send_for_ever(door, b"GET /ready HTTP/1.1\r\nx: ", b"y" * 1_500)
        after = await get(door, "/ready")

    assert [answer.status for answer in (fits, larger, endless, after)] == [200, 431, 431, 200]
    assert "doors.http.head_bytes_max" in larger.json["detail"]


async def test_a_head_that_dribbles_in_is_cut_off() -> None:
    async with opened(receive_seconds_max=0.2) as door:
        assert await send(door, b"GET /ready HTTP/1.1\r\n") == b""
        assert await send(door, b"") == b""
        assert (await get(door, "/ready")).status == 200


async def test_garbage_gets_an_answer_and_harms_nobody() -> None:
    async with opened() as door:
        assert (await send(door, b"\x00\x01garbage\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        assert (await send(door, b"SEAL\x00\x00\x00\x10" + bytes(64))).startswith(b"HTTP/1.1 400 ")
        assert (await get(door, "/ready")).status == 200


async def test_one_connection_more_than_allowed_is_told_so() -> None:
    async with opened(connections_max=2) as door, asyncio.timeout(DEADLINE_SECONDS):
        held = [await connect(door) for _ in range(2)]
        for reader, writer in held:
            writer.write(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await reader.readuntil(b'ready"}')).startswith(b"HTTP/1.1 200 ")
        refused = await get(door, "/ready")
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        await until(lambda: not door.connections)
        again = await get(door, "/ready")

    assert (refused.status, again.status) == (503, 200)
    assert "doors.http.connections_max" in refused.json["detail"]


async def test_a_drained_door_lets_nobody_in_and_an_idle_connection_go() -> None:
    async with opened() as door, asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await connect(door)
        writer.write(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await reader.readuntil(b'ready"}')
        await door.drain(30)

        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await connect(door)


async def test_a_client_that_reads_nothing_is_cut_off() -> None:
    node = Node()
    node.rendered = lambda: (b"x" * 20_000_000, "text/plain")
    async with opened(node, send_seconds_max=0.2) as door, asyncio.timeout(DEADLINE_SECONDS):
        _, writer = await connect(door)
        # Nothing is read on this side until the door has given up.
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await until(lambda: door.connections > 0)
        await until(lambda: not door.connections)
        writer.transport.abort()


async def test_closing_ends_a_request_that_never_arrives() -> None:
    async with opened() as door, asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await connect(door)
        writer.write(b"POST /ready HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n12345")
        await until(lambda: door.connections > 0)
        await door.close()

        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_taken_port_names_port_and_setting() -> None:
    async with opened() as door:
        port = int(door.address.rpartition(":")[2])
        with pytest.raises(PortTaken, match=r"doors\.http\.port") as caught:
            async with opened(port=port):
                pass
    assert str(port) in str(caught.value)


async def test_a_host_that_is_not_ours_names_the_setting() -> None:
    for host in ("192.0.2.1", "no-such-host.invalid"):
        with pytest.raises(InvalidArgument, match=r"doors\.http\.host"):
            async with opened(host=host):
                pass


@pytest.mark.parametrize(
    "field", ["connections_max", "head_bytes_max", "body_bytes_max", "receive_seconds_max", "send_seconds_max"]
)
def test_a_limit_of_nothing_is_refused(field: str) -> None:
    with pytest.raises(InvalidArgument, match=f"doors.http.{field}"):
        HttpDoorSettings(**{field: 0})  # type: ignore[arg-type]
