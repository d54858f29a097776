"""A conversation in which replies and pushed messages come in between each other."""

from __future__ import annotations

import asyncio
import socket

import pytest

from sealane.cipher import connection as connection_module
from sealane.cipher.connection import LINE_BYTES_MAX, connect
from sealane.cipher.errors import ConnectionLost, Refused, UnexpectedAnswer
from sealane.cipher.lines import acknowledge, consume, declare_queue
from tests.unit.cipher.scripted_broker import Peer, scripted_broker
from tests.unit.cipher.sealed import message


async def test_messages_that_come_before_a_reply_wait_for_whoever_wants_them() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear()
        await peer.push(message("a"))
        await peer.say("Consuming q")
        await peer.push(message("b"))
        assert await peer.hear() == "ack a"
        await peer.push(message("c"))
        await peer.say("ACK_CONFIRMED a")
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        await connection.ask(consume("q"), 5)
        await connection.send(acknowledge("a"))
        assert await connection.reply() == "ACK_CONFIRMED a"
        assert [each.message_id for each in await connection.pushed(2)] == ["a", "b"]
        assert [each.message_id for each in await connection.pushed(2)] == ["c"]
        await connection.close()


async def test_a_line_may_come_in_pieces_and_end_as_windows_has_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear()
        await peer.say_in_parts(b"Queue ", b"declared\r", b"\n")
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        await connection.ask(declare_queue("q"), 5)
        await connection.close()


async def test_an_error_an_answer_to_something_else_and_silence_are_three_things() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear()
        await peer.say("Error: no")
        await peer.hear()
        await peer.say("220 mail.example ESMTP")
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        with pytest.raises(Refused, match="refuses `declare_queue q`: no"):
            await connection.ask(declare_queue("q"), 5)
        with pytest.raises(UnexpectedAnswer, match=r"220 mail\.example.*is a cipher door"):
            await connection.ask(declare_queue("q"), 5)
        with pytest.raises(ConnectionLost, match=r"does not answer `declare_queue q` within 0\.05 s"):
            await connection.ask(declare_queue("q"), 0.05)
        await connection.close()


async def test_the_end_is_told_after_what_came_before_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.push(message("a"))
        await peer.say("Error: you were shown out")

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        assert [each.message_id for each in await connection.pushed(10)] == ["a"]
        with pytest.raises(ConnectionLost, match="closed the connection: you were shown out"):
            await connection.pushed(10)
        await connection.close()


async def test_a_connection_that_breaks_is_lost_for_all_who_wait() -> None:
    async def script(peer: Peer) -> None:
        await peer.hear()
        peer.cut()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        with pytest.raises(ConnectionLost):
            await connection.ask(declare_queue("q"), 5)
        await connection.send(declare_queue("q"))
        with pytest.raises(ConnectionLost):
            await connection.reply()
        await connection.close()
        await connection.close()


async def test_a_line_without_end_is_not_kept() -> None:
    async def script(peer: Peer) -> None:
        await peer.say("x" * (LINE_BYTES_MAX + 1))
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        with pytest.raises(UnexpectedAnswer, match="a line of more than 16,777,216 bytes"):
            await connection.reply()
        await connection.close()


async def test_more_messages_than_there_is_room_for_are_dropped_and_replies_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "PUSHED_MESSAGES_MAX", 2)

    async def script(peer: Peer) -> None:
        await peer.push(*map(message, "abc"))
        await peer.hear()
        await peer.say("Queue declared")
        await peer.push(message("d"))
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        await connection.ask(declare_queue("q"), 5)
        assert [each.message_id for each in await connection.pushed(10)] == ["a", "b"]
        await connection.close()


async def test_a_broker_that_pushes_faster_than_messages_are_taken_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "PUSHED_BYTES", 1_000)
    large, count = bytes(100_000), 200
    written = asyncio.Event()

    async def script(peer: Peer) -> None:
        for number in range(count):
            await peer.push(message(f"m-{number}", large))
        written.set()
        await peer.hear()
        await peer.say("Queue declared")
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        taken = [each.message_id for each in await connection.pushed(1)]
        assert not written.is_set(), "27 MB do not fit into sockets, and nobody has read them"
        await connection.ask(declare_queue("q"), 20)
        while len(taken) < count:
            taken += [each.message_id for each in await connection.pushed(10)]
        assert taken == [f"m-{number}" for number in range(count)]
        await connection.close()


async def test_replies_that_nobody_asked_for_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "REPLIES_MAX", 3)

    async def script(peer: Peer) -> None:
        await peer.say(*["Queue declared"] * 4)
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        connection = await broker.dial()
        with pytest.raises(UnexpectedAnswer, match="that nobody gave"):
            await connection.pushed(1)
        await connection.close()


async def test_where_nobody_listens_that_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: .*refused|Connect call failed"):
        await connect("127.0.0.1", port)
    with pytest.raises(ConnectionLost, match=r"no-such-host\.invalid:5672"):
        await connect("no-such-host.invalid", 5672)
