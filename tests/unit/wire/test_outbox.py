"""What is said first in a pass of the loop goes at once; the rest of the pass goes together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sealane.wire.frames import JOINED_BYTES, Buffer
from sealane.wire.outbox import Outbox, SendsTogether, write_pieces


class Pass:
    """A pass of an event loop that ends when it is told to."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.sent: list[tuple[list[Buffer], int]] = []
        self.outbox = Outbox(self.call_soon, lambda pieces, length: self.sent.append((pieces, length)))

    def call_soon(self, callback: Callable[[], None]) -> Pass:
        self.due = [callback]
        return self

    def cancel(self) -> None:
        self.due = []

    def end(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


def test_the_first_goes_at_once_and_what_follows_goes_together_at_the_end_of_the_pass():
    loop = Pass()
    for said in (b"one", b"two", b"three"):
        loop.outbox.write([said])
    assert loop.sent == [([b"one"], 3)]
    loop.end()
    assert loop.sent == [([b"one"], 3), ([b"twothree"], 8)]
    loop.outbox.write([b"four"])
    assert loop.sent[-1] == ([b"four"], 4), "a new pass begins anew"
    loop.end()
    assert len(loop.sent) == 3, "nothing waited"


def test_much_does_not_wait_for_the_end_of_the_pass_and_is_not_copied():
    loop = Pass()
    loop.outbox.write([b"first"])
    long = bytes(JOINED_BYTES)
    loop.outbox.write([long])
    assert len(loop.sent) == 1, "up to its limit it waits"
    loop.outbox.write([b"!"])
    pieces, length = loop.sent[1]
    assert pieces[0] is long
    assert length == JOINED_BYTES + 1


def test_a_flush_sends_what_waits_and_a_discard_does_not():
    loop = Pass()
    loop.outbox.write([b"first"])
    loop.outbox.write([b"last word"])
    loop.outbox.flush()
    assert loop.sent[-1] == ([b"last word"], 9)
    assert not loop.due
    loop.outbox.write([b"sent"])
    loop.outbox.write([b"lost"])
    loop.outbox.discard()
    loop.end()
    assert loop.sent[-1] == ([b"sent"], 4)


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


async def test_uvloop_tells_of_what_is_too_much_for_a_peer_that_does_not_read():
    uvloop = pytest.importorskip("uvloop")
    paused = []

    class Writing(asyncio.Protocol):
        def pause_writing(self) -> None:
            paused.append(True)

    def run() -> None:
        async def overfill() -> None:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            transport, _ = await loop.create_connection(Writing, "127.0.0.1", port)
            assert type(transport).__module__ == "uvloop.loop"
            for _ in range(64):
                write_pieces(transport, [b"head", bytes(1 << 20)])
            transport.abort()
            server.close()

        uvloop.run(overfill())

    await asyncio.to_thread(run)
    assert paused
