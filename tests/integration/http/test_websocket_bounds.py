"""What a WebSocket's client cannot do to a node: break it, fill its memory, or hold it up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from websockets.frames import Opcode

import sealane
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.websocket import connection as bounds
from sealane.doors.http.websocket import conversation as conversation_bounds
from sealane.doors.http.websocket.connection import UNSENT_BYTES, WebSocketConnection
from sealane.doors.http.websocket.framing import FRAGMENTS_MAX
from sealane.doors.http.websocket.messages import Request
from sealane.node import NodeSettings
from tests.http_node import HttpNode, http_node
from tests.integration.http.raw_socket import RawSocket, raw_socket
from tests.integration.http.socket_client import Refused, open_socket

DEADLINE_SECONDS = 30.0


@pytest.fixture
async def small() -> AsyncIterator[HttpNode]:
    """A node whose messages and deliveries are small."""
    door = HttpDoorSettings(port=0, body_bytes_max=100_000)
    async with http_node(door=door, settings=NodeSettings(delivery_bytes_max=64 << 10)) as running:
        yield running


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for announces itself to nobody
            await asyncio.sleep(0.005)


def only_connection(node: HttpNode) -> WebSocketConnection:
    [connection] = node.door._conversations._connections
    return connection


def say(raw: RawSocket, type: str, **fields: object) -> None:
    raw.send(Opcode.TEXT, json.dumps({"type": type, **fields}).encode())


async def hear(raw: RawSocket) -> dict[str, object]:
    opcode, data = await raw.receive()
    assert opcode == Opcode.TEXT
    heard: dict[str, object] = json.loads(data)
    return heard


# --- what is no message -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "data", "code"),
    [
        (Opcode.TEXT, b"not json", 1007),
        (Opcode.TEXT, b'{"type": "ping"', 1007),
        (Opcode.TEXT, b'{"type": "ping", "x": "\xff"}', 1007),
        (Opcode.TEXT, b'{"type":' + b"[" * 50_000, 1007),
        (Opcode.TEXT, b"", 1007),
        (Opcode.BINARY, b'{"type": "ping"}', 1003),
        (Opcode.CONT, b"of what?", 1002),
        (Opcode.TEXT, b'"' + b"x" * 100_000, 1009),
    ],
)
async def test_what_cannot_be_read_closes_the_connection_with_the_code_for_it(
    small: HttpNode, opcode: Opcode, data: bytes, code: int
) -> None:
    async with raw_socket(small.door) as raw:
        raw.send(opcode, data)
        found, reason = await raw.closed()
    assert found == code
    assert reason


@pytest.mark.parametrize(
    "garbage", [b"\xff" * 64, b"\x81\x05hello", b"GET / HTTP/1.1\r\n\r\n", b"\x89\xfe\x00\xff" + b"x" * 300]
)
async def test_bytes_that_are_no_frames_close_the_connection(small: HttpNode, garbage: bytes) -> None:
    async with raw_socket(small.door) as raw:
        raw.writer.write(garbage)
        code, _ = await raw.closed()
    assert code == 1002
    await until(lambda: not len(small.door._conversations))


async def test_a_message_as_large_as_the_limit_is_taken_and_one_byte_more_is_not(small: HttpNode) -> None:
    async with open_socket(small.door) as socket:
        frame = json.dumps({"type": "ping", "call": 1})
        await socket.connection.send(frame + " " * (100_000 - len(frame)))
        assert (await socket.hear())["type"] == "pong"
        await socket.connection.send(frame + " " * (100_001 - len(frame)))
        assert (await socket.closed())[0] == 1009


async def test_a_message_in_many_frames_is_one_message(small: HttpNode) -> None:
    async with raw_socket(small.door) as raw:
        await hear(raw)
        text = json.dumps({"type": "ping", "call": 1}).encode()
        raw.send(Opcode.TEXT, text[:5], fin=False)
        raw.send(Opcode.PING, b"are you there?")
        raw.send(Opcode.CONT, text[5:10], fin=False)
        raw.send(Opcode.CONT, text[10:])
        assert await raw.receive() == (Opcode.PONG, b"are you there?")
        assert await hear(raw) == {"type": "pong", "call": 1}


async def test_the_frames_of_a_message_count_even_if_they_are_empty(small: HttpNode) -> None:
    async with raw_socket(small.door) as raw:
        raw.send(Opcode.TEXT, b"", fin=False)
        for _ in range(FRAGMENTS_MAX):
            raw.send(Opcode.CONT, b"", fin=False)
        assert (await raw.closed())[0] == 1009


async def test_fragments_count_together_against_the_size_of_a_message(small: HttpNode) -> None:
    async with raw_socket(small.door) as raw:
        raw.send(Opcode.TEXT, b'"' + b"x" * 60_000, fin=False)
        raw.send(Opcode.CONT, b"x" * 60_000)
        assert (await raw.closed())[0] == 1009


async def test_nothing_is_compressed(small: HttpNode) -> None:
    async with open_socket(small.door, compression="deflate") as socket:
        assert not socket.connection.protocol.extensions


# --- what is too much -------------------------------------------------------------------------------------------------


async def test_a_client_that_does_not_read_is_sent_no_more_than_fits(small: HttpNode) -> None:
    published = 5_000
    async with sealane.connect(small.url) as lane:
        for _ in range(10):
            await lane.publish_many("t", [b"x" * 4_000] * (published // 10))
    async with raw_socket(small.door, receive_bytes=16 << 10) as raw:
        say(raw, "subscribe", topic="t", subscription="s", credit=published)
        connection = only_connection(small)
        await until(lambda: connection._writing_paused)
        subscription = small.node.topic("t").owners[0].core.subscription("s")
        await until(lambda: connection._conversation is not None and connection._conversation._paused)
        leased = len(subscription.leases.outstanding)
        assert leased < published / 2
        assert connection.transport.get_write_buffer_size() < UNSENT_BYTES + 2 * (64 << 10) * 2

        # It goes on where it was once it reads.
        heard = 0
        while heard < published:
            found = await hear(raw)
            if found["type"] == "deliver":
                heard += len(found["messages"])  # type: ignore[arg-type]
        assert heard == published


async def test_a_client_that_reads_nothing_for_too_long_is_cut_off() -> None:
    door = HttpDoorSettings(port=0, send_seconds_max=0.2)
    async with http_node(door=door) as node:
        await node.publish("t", *["x" * 100_000] * 80)
        async with raw_socket(node.door, receive_bytes=16 << 10) as raw:
            say(raw, "subscribe", topic="t", subscription="s", credit=1_000)
            await until(lambda: len(node.door._conversations) == 1)
            await until(lambda: not len(node.door._conversations))
            await until(lambda: not node.node.topic("t").owners[0].core.subscription("s").leases.outstanding)


async def test_answers_that_are_not_read_stop_the_node_from_reading(small: HttpNode) -> None:
    async with raw_socket(small.door, receive_bytes=8 << 10) as raw:
        connection = only_connection(small)
        ping = b"x" * 125
        while not connection._intake.paused:
            raw.send(Opcode.PING, ping)
            if raw.writer.transport.get_write_buffer_size() > 1 << 20:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0)
        assert connection.transport.get_write_buffer_size() < 3 * UNSENT_BYTES


async def test_only_so_many_requests_are_carried_out_at_a_time(
    small: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_bounds, "REQUESTS_RUNNING_MAX", 5)
    most = 0
    carry_out = conversation_bounds.Conversation._carry_out

    async def counted(self: conversation_bounds.Conversation, request: Request) -> None:
        nonlocal most
        most = max(most, len(self._running))
        await carry_out(self, request)

    monkeypatch.setattr(conversation_bounds.Conversation, "_carry_out", counted)
    async with open_socket(small.door) as socket:
        for number in range(50):
            await socket.say("subscribe", call=number + 1_000, topic="t", subscription=f"s{number}")
        answered = {(await socket.news("subscribed"))["call"] for _ in range(50)}
    assert answered == set(range(1_000, 1_050))
    assert most == 5


async def test_a_client_with_too_much_in_flight_is_not_read_from(
    small: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "IN_FLIGHT_BYTES_MAX", 20_000)
    async with open_socket(small.door) as socket:
        for number in range(100):
            await socket.say("publish", call=number + 1_000, topic="t", messages=[{"payload": "x" * 9_000}])
        calls = [(await socket.news("published"))["call"] for _ in range(100)]
        assert only_connection(small)._intake.in_flight_bytes == 0
    assert calls == list(range(1_000, 1_100))


# --- what is too slow -------------------------------------------------------------------------------------------------


async def test_a_client_that_is_silent_is_asked_whether_it_is_there(
    small: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "PING_SECONDS", 0.01)
    async with raw_socket(small.door) as raw:
        await hear(raw)
        opcode, _ = await raw.receive()
        assert opcode == Opcode.PING
        monkeypatch.setattr(bounds, "PONG_SECONDS_MAX", 0.01)
        await raw.gone()
    await until(lambda: not len(small.door._conversations))


async def test_a_client_that_answers_pings_stays(small: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PING_SECONDS", 0.01)
    async with open_socket(small.door) as socket:
        connection = only_connection(small)
        for _ in range(2):
            await until(lambda: connection._pinged)
            await until(lambda: not connection._pinged)
        await socket.call("ping")


async def test_a_message_that_dribbles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    door = HttpDoorSettings(port=0, receive_seconds_max=0.5)
    async with http_node(door=door) as node, raw_socket(node.door) as raw:
        raw.send(Opcode.TEXT, b'{"type":', fin=False)
        for _ in range(100):
            raw.send(Opcode.CONT, b" ", fin=False)
            await asyncio.sleep(0)
        code, reason = await raw.closed()
    assert (code, reason) == (1008, "a message took longer than doors.http.receive_seconds_max")


async def test_a_client_that_does_not_repeat_the_last_word_is_cut_off(
    small: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "FAREWELL_SECONDS_MAX", 0.01)
    async with raw_socket(small.door) as raw:
        raw.send(Opcode.TEXT, b"not json")
        await raw.closed()
        await raw.gone()


async def test_a_crash_closes_one_connection_and_no_other(small: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    crashes: list[str] = []
    small.node.supervisor.on_crash = lambda task, error: crashes.append(task)

    def crash(self: object, data: bytes) -> None:
        raise RuntimeError("nobody expected this")

    async with open_socket(small.door) as other, open_socket(small.door) as socket:
        with monkeypatch.context() as broken:
            broken.setattr(conversation_bounds.Conversation, "hear", crash)
            await socket.say("ping")
            assert (await socket.closed())[0] == 1011
        await other.call("ping")
    assert crashes == ["websocket connection"]


async def test_a_request_that_crashes_is_an_error_of_that_call(
    small: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes: list[str] = []
    small.node.supervisor.on_crash = lambda task, error: crashes.append(task)

    def crash(*arguments: object) -> None:
        raise RuntimeError("secret")

    async with open_socket(small.door) as socket:
        with monkeypatch.context() as broken:
            broken.setattr(conversation_bounds, "batch_of", crash)
            with pytest.raises(Refused, match="500") as refused:
                await socket.publish("t", "a")
            assert "secret" not in str(refused.value)
        await socket.publish("t", "a")
    assert crashes == ["websocket request"]
