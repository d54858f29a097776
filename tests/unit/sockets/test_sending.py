"""Pieces of frames leave in their order, all of them, in as few calls as can be."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Coroutine
from typing import cast

import pytest
import uvloop

from sealane.sockets import SendsTogether, write_pieces
from sealane.sockets.sending import LONG_BYTES


class Transport:
    """Python's own, as far as is needed here."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def write(self, data: object, /) -> None:
        self.calls.append(("write", data))

    def writelines(self, pieces: object, /) -> None:
        self.calls.append(("writelines", pieces))


class OurTransport(SendsTogether, Transport):
    pass


class LibuvTransport(Transport):
    __module__ = "uvloop.loop"


def test_the_last_piece_goes_by_write_which_tells_whether_it_was_too_much():
    transport = Transport()
    write_pieces(transport, [b"a", b"b", b"c"])
    write_pieces(transport, [b"d"])
    assert transport.calls == [("writelines", [b"a", b"b"]), ("write", b"c"), ("write", b"d")]


@pytest.mark.parametrize("transport_class", [OurTransport, LibuvTransport])
def test_where_a_transport_sends_all_pieces_together_they_go_by_one_call(transport_class: type[Transport]):
    transport = transport_class()
    write_pieces(transport, [b"a", b"b", b"c"])
    write_pieces(transport, [b"d"])
    assert transport.calls == [("writelines", [b"a", b"b", b"c"]), ("write", b"d")]


class TlsOfUvloop(Transport):
    """Whoever wrote to its socket would send plain text."""

    __module__ = "uvloop.loop"

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> object:
        raise AssertionError(f"nobody needs its {name}")


def test_a_long_frame_goes_through_the_transport_where_that_encrypts_it():
    transport = TlsOfUvloop()
    pieces = [b"head", bytes(2 * LONG_BYTES)]
    write_pieces(transport, pieces)
    [(how, what)] = transport.calls
    assert how == "writelines"
    assert what is pieces


# --- real ones ------------------------------------------------------------------------------------------------------


KERNEL_BYTES = 128 << 10
"""What the kernel keeps at each end, so that it does not take a long frame at once."""


class Slow(asyncio.Protocol):
    """Reads nothing until it is told to."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(None)


class Writing(asyncio.Protocol):
    paused = False

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


Work = Callable[[asyncio.WriteTransport, Writing, Slow], Coroutine[None, None, None]]


def between_two_ends(work: Work) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[Slow] = loop.create_future()

        def peer() -> Slow:
            came.set_result(slow := Slow())
            return slow

        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
        server = await loop.create_server(peer, sock=listener)
        transport, writing = await loop.create_connection(Writing, *listener.getsockname())
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
        slow = await came
        try:
            async with asyncio.timeout(30):
                await work(transport, writing, slow)
        finally:
            transport.abort()
            slow.transport.abort()
            server.close()
            await server.wait_closed()

    uvloop.run(run())


def test_all_of_it_arrives_in_its_order_however_little_the_kernel_takes_at_once():
    chance = random.Random(7)
    lengths = [chance.choice([1, 100, LONG_BYTES, LONG_BYTES + 1, 300_000, 3_000_000]) for _ in range(60)]
    frames = [[chance.randbytes(8), chance.randbytes(length)] for length in lengths]
    expected = b"".join(b"".join(pieces) for pieces in frames)

    async def work(transport: asyncio.WriteTransport, writing: Writing, slow: Slow) -> None:
        for place, pieces in enumerate(frames):
            if place == 20:
                assert writing.paused, "the kernel does not take all of it, and the transport says so"
                slow.transport.resume_reading()
            write_pieces(transport, pieces)
            await asyncio.sleep(0)
        transport.write_eof()
        await slow.lost
        is_whole = slow.heard == expected  # A difference of megabytes would take minutes to print.
        assert is_whole

    between_two_ends(work)


def test_more_pieces_than_one_call_takes_all_arrive():
    pieces = [bytes([place % 251]) * 100 for place in range(3 * os.sysconf("SC_IOV_MAX"))]

    async def work(transport: asyncio.WriteTransport, writing: Writing, slow: Slow) -> None:
        slow.transport.resume_reading()
        write_pieces(transport, pieces)
        transport.write_eof()
        await slow.lost
        is_whole = slow.heard == b"".join(pieces)
        assert is_whole

    between_two_ends(work)


def test_of_a_broken_connection_the_transport_hears_and_nobody_else():
    async def work(transport: asyncio.WriteTransport, writing: Writing, slow: Slow) -> None:
        slow.transport.abort()
        await slow.lost
        while not transport.is_closing():
            write_pieces(transport, [b"head", bytes(LONG_BYTES)])
            await asyncio.sleep(0)

    between_two_ends(work)


def test_a_long_frame_leaves_without_the_interpreter_and_a_short_one_by_the_transport(monkeypatch: pytest.MonkeyPatch):
    handed: list[int] = []
    real = os.writev

    def writev(descriptor: int, pieces: list[bytes]) -> int:
        handed.append(sum(map(len, pieces)))
        return real(descriptor, pieces)

    async def work(transport: asyncio.WriteTransport, writing: Writing, slow: Slow) -> None:
        monkeypatch.setattr(os, "writev", writev)
        write_pieces(transport, [bytes(LONG_BYTES)])
        assert handed == []
        write_pieces(transport, [b"!", bytes(LONG_BYTES)])
        assert handed == [LONG_BYTES + 1]

    between_two_ends(work)


def test_uvloop_tells_of_what_is_too_much_for_a_peer_that_does_not_read():
    async def overfill(transport: asyncio.WriteTransport, writing: Writing, slow: Slow) -> None:
        assert type(transport).__module__ == "uvloop.loop"
        for _ in range(64):
            write_pieces(transport, [b"head", bytes(1 << 20)])
        assert writing.paused

    between_two_ends(overfill)
