"""Leases as their holders have them, which come back in the path of a request."""

from __future__ import annotations

import base64
import random

import msgspec

from sealane.errors import InvalidArgument
from sealane.node.pulling.ticket import SECRET_BYTES, TICKET_CHARS_MAX, LeasedRun, Ticket
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_msgpack

_SECRET = bytes(range(SECRET_BYTES))
SEEDS = tuple(
    Ticket(_SECRET, leases).text().encode()
    for leases in ((), (LeasedRun(0, 1, 2, 3),), tuple(LeasedRun(each, 1 << each, 0, 1 << 62) for each in range(9)))
)
_spoil_inside = spoil_msgpack()


def check(data: bytes) -> bool:
    try:
        ticket = Ticket.read(data.decode("utf-8", "replace"))
    except InvalidArgument:
        return False
    assert len(ticket.secret) == SECRET_BYTES
    assert Ticket.read(ticket.text()) == ticket
    return True


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Mostly what is in it, which is MessagePack; now and then that nests as deep as there is room."""
    if choose.random() < 0.02:
        inside = b"\x93\xc4\x10" + _SECRET + b"\x90" + b"\x91" * choose.choice((10, 1_000, TICKET_CHARS_MAX))
        return base64.urlsafe_b64encode(inside[: TICKET_CHARS_MAX // 4 * 3])
    if choose.random() < 0.3:
        return mutate(data, choose)
    try:
        inside = base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
    except ValueError:
        return mutate(data, choose)
    try:
        return base64.urlsafe_b64encode(_spoil_inside(inside, choose)).rstrip(b"=")
    except msgspec.MsgspecError:
        return mutate(data, choose)


TARGET = Target("tickets", SEEDS, check, spoil, bytes_max=2 * TICKET_CHARS_MAX)
