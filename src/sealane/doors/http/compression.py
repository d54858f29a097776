"""Compressed bodies: requests are unpacked up to the same limit as any body, answers are packed for who asks.

A few bytes can unpack to any size, so what comes out is counted while it does, and never more than a piece at a time.
"""

from __future__ import annotations

import zlib

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealane.doors.http.problem import Problem

PACKED_BYTES_MIN = 1024
"""Shorter answers gain nothing by being packed."""
PACK_LEVEL = 4
"""A third of the time of the usual level, for a few per cent more bytes."""
PIECE_BYTES = 64 * 1024

_WINDOWS = {b"gzip": zlib.MAX_WBITS | 16, b"x-gzip": zlib.MAX_WBITS | 16, b"deflate": zlib.MAX_WBITS}
_PACKED_TYPES = (b"application/json", b"application/problem+json", b"text/html", b"text/plain")
_LAST_ANSWER = {"connection": "close"}


class UnpackedBodies:
    """Lets routes read `Content-Encoding: gzip` or `deflate` as if it had been sent plainly."""

    def __init__(self, app: ASGIApp, *, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        encoding = _header(scope, b"content-encoding").strip().lower() if scope["type"] == "http" else b""
        if encoding in (b"", b"identity"):
            await self._app(scope, receive, send)
            return
        if encoding not in _WINDOWS:
            problem = f"the body is encoded as {encoding.decode('latin-1')!r}; gzip, deflate and identity are read"
            await Problem(415, problem, headers={"accept-encoding": "gzip, deflate, identity", **_LAST_ANSWER})(
                scope, receive, send
            )
            return
        unpacked = _Unpacked(receive, _WINDOWS[encoding], self._bytes_max)
        try:
            await unpacked.read()
        except HTTPException as refused:
            await Problem(refused.status_code, refused.detail, headers=_LAST_ANSWER)(scope, receive, send)
            return
        kept = [
            (name, value) for name, value in scope["headers"] if name not in (b"content-encoding", b"content-length")
        ]
        length = str(len(unpacked.body)).encode()
        await self._app({**scope, "headers": [*kept, (b"content-length", length)]}, unpacked.receive, send)


class _Unpacked:
    """One body, whole."""

    def __init__(self, receive: Receive, window: int, bytes_max: int) -> None:
        self._receive = receive
        self._unpacker = zlib.decompressobj(window)
        self._bytes_max = bytes_max
        self._told = False
        self.body = bytearray()

    async def read(self) -> None:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise HTTPException(400, "the client left before its body had come")
            self._unpack(message.get("body", b""))
            more = message.get("more_body", False)
        if not self._unpacker.eof:
            raise HTTPException(400, "the compressed body is cut off")

    def _unpack(self, packed: bytes) -> None:
        try:
            while packed:
                self.body += self._unpacker.decompress(packed, PIECE_BYTES)
                packed = self._unpacker.unconsumed_tail
                if len(self.body) > self._bytes_max:
                    detail = f"the body unpacks to more than {self._bytes_max:,} bytes (doors.http.body_bytes_max)"
                    raise HTTPException(413, detail)
        except zlib.error:
            raise HTTPException(400, "the body is not what its Content-Encoding says") from None
        if self._unpacker.unused_data:
            raise HTTPException(400, "bytes follow the end of the compressed body")

    async def receive(self) -> Message:
        if self._told:
            return await self._receive()
        self._told = True
        return {"type": "http.request", "body": bytes(self.body), "more_body": False}


class PackedAnswers:
    """Sends text of some length as gzip to whoever accepts that. Arrow and streams go as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _accepts_gzip(_header(scope, b"accept-encoding")):
            send = _packing(send)
        await self._app(scope, receive, send)


def _packing(send: Send) -> Send:
    held: Message | None = None

    async def send_packed(message: Message) -> None:
        nonlocal held
        if message["type"] == "http.response.start" and _is_text(message):
            held = message
            return
        if held is not None:
            start, held = held, None
            body = message.get("body", b"")
            # What comes in pieces is a stream: its reader waits for each of them.
            if not message.get("more_body", False) and len(body) >= PACKED_BYTES_MIN:
                packer = zlib.compressobj(PACK_LEVEL, wbits=zlib.MAX_WBITS | 16)
                body = packer.compress(body) + packer.flush()
                kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
                added = [(b"content-length", str(len(body)).encode()), (b"content-encoding", b"gzip")]
                start = {**start, "headers": [*kept, *added, (b"vary", b"accept-encoding")]}
                message = {**message, "body": body}
            await send(start)
        await send(message)

    return send_packed


def _is_text(start: Message) -> bool:
    kind = next((value for name, value in start.get("headers", ()) if name == b"content-type"), b"")
    return kind.partition(b";")[0] in _PACKED_TYPES


def _accepts_gzip(accepted: bytes) -> bool:
    for each in accepted.split(b","):
        name, _, weight = each.partition(b";")
        if name.strip().lower() == b"gzip":
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")
