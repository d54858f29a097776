"""Where reading begins, as a query or a message says it: a word, a moment or a position that was given out before."""

from __future__ import annotations

import datetime
import random

from sealane.doors.http.starts import start_of
from sealane.errors import InvalidArgument
from sealane.node.following.position import Position
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

_WORDS = (b"0:", b",", b"-", b"..", b"@", b"T", b"Z", b"+00:00", b"9" * 18, b"9" * 19, b"-1", b"W", b"24", "٣".encode())
SEEDS = (
    b"earliest",
    b"2026-01-31T12:00:00Z",
    b"2026-01-31T12:00:00.5+02:00",
    b"0:42,1:17",
    b"0:42-38-40..41,7:0@5f2c",
)


def check(data: bytes) -> bool:
    try:
        start = start_of(data.decode("utf-8", "replace"))
    except InvalidArgument:
        return False
    if isinstance(start, Position):
        assert Position.read(start.text()) == start
    elif isinstance(start, datetime.datetime):
        assert start.tzinfo is not None
    else:
        assert start in ("earliest", "latest")
    return True


def spoil(data: bytes, choose: random.Random) -> bytes:
    return mutate(data, choose, words=_WORDS)


TARGET = Target("positions", SEEDS, check, spoil)
