"""Compressed bodies of requests, which may unpack to any size. The first byte says how they are encoded."""

from __future__ import annotations

import gzip
import random
import zlib
from functools import cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealane.doors.http.compression import UnpackedBodies
from tests.fuzz.coroutines import at_once
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

BYTES_MAX = 64 << 10
_ENCODINGS = (b"gzip", b"deflate", b"x-gzip")

SEEDS = (
    b"\0" + gzip.compress(b"hello", mtime=0),
    b"\1" + zlib.compress(b"hello" * 20),
    b"\2" + gzip.compress(bytes(BYTES_MAX), mtime=0),
)


def check(data: bytes) -> bool:
    encoding = _ENCODINGS[data[0] % len(_ENCODINGS)] if data else _ENCODINGS[0]
    taken: list[bytes] = []
    statuses: list[int] = []

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        taken.append(message["body"])
        assert dict(scope["headers"])[b"content-length"] == str(len(message["body"])).encode()

    at_once(_ask(UnpackedBodies(route, bytes_max=BYTES_MAX), encoding, data[1:], statuses))
    if statuses:
        assert statuses[0] in (400, 413)
        assert not taken
        return False
    assert len(taken[0]) <= BYTES_MAX
    return True


async def _ask(app: ASGIApp, encoding: bytes, body: bytes, statuses: list[int]) -> None:
    """The body comes in two pieces, as it does over a network."""
    half = len(body) // 2
    pieces = [body[:half], body[half:]]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app({"type": "http", "headers": [(b"content-encoding", encoding)]}, receive, send)


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Sometimes what is inside is another one, larger too, and packed soundly: a bomb."""
    if choose.random() < 0.7:
        return mutate(data, choose)
    packed = choose.choice(_bombs())
    return packed[: choose.choice((len(packed), len(packed), len(packed) - 1, len(packed) // 2))]


@cache
def _bombs() -> tuple[bytes, ...]:
    found = []
    for size in (0, 1, BYTES_MAX - 1, BYTES_MAX, BYTES_MAX + 1, 16 << 20):
        found += [b"\0" + gzip.compress(bytes(size), mtime=0), b"\1" + zlib.compress(b"x" * size, 9)]
    return tuple(found)


TARGET = Target("http_compression", SEEDS, check, spoil)
