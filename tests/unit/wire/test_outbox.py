"""What is said first in a pass of the loop goes at once; the rest of the pass goes together."""

from __future__ import annotations

from collections.abc import Callable

from sealane.wire.frames import JOINED_BYTES, Buffer
from sealane.wire.outbox import Outbox


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
