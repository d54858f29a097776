"""A tiny client: `sealane.wire` on a real socket, saying exactly what a test wants said."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any, Self, TypeVar

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.message import Batch, Limits, Stamp, decode, encode, from_payloads
from sealane.wire import messages as wire
from sealane.wire.connection import Connection, Received
from sealane.wire.frames import new_scratch

DEADLINE_SECONDS = 60.0
STAMP = Stamp(1_760_000_000_000_000, bytes(range(16)))
M = TypeVar("M")


def batch_of(*payloads: bytes, stamp: Stamp = STAMP) -> bytes:
    return encode(from_payloads(list(payloads), stamp, limits=Limits()))


class Peer:
    """One connection. Whatever comes that nobody has asked for is in `heard`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.heard: list[Received] = []
        self._now = asyncio.get_running_loop().time
        self.wire = Connection("client", new_scratch(), self._now())

    @classmethod
    async def connect(cls, address: str, tls: ssl.SSLContext | None = None) -> Self:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port), ssl=tls))

    @classmethod
    async def enter(cls, address: str, tls: ssl.SSLContext | None = None, **hello: Any) -> Self:
        """Connect, and be welcomed."""
        peer = await cls.connect(address, tls)
        peer.say(wire.Hello([1], "peer", **hello))
        await peer.hear(wire.Welcome)
        return peer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        if any(error):
            self.writer.transport.abort()  # A test that failed does not wait for what the node does not read.
        await self.close()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass  # The node has closed it first.

    # --- saying -------------------------------------------------------------------------------------------------------

    def say(self, message: Any, *body: bytes) -> None:
        self.writer.write(b"".join(self.wire.say(message, body, now=self._now())))

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.writer.write(data)

    # --- hearing ------------------------------------------------------------------------------------------------------

    async def hear(self, *kinds: type[M]) -> M:
        """The next message of one of these kinds; others stay in `heard`."""
        return (await self.hear_with_body(*kinds))[0]

    async def hear_with_body(self, *kinds: type[M]) -> tuple[M, memoryview]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                for place, (message, body) in enumerate(self.heard):
                    if isinstance(message, kinds):
                        del self.heard[place]
                        return message, body
                await self._receive()

    async def _receive(self) -> None:
        data = await self.reader.read(65_536)
        if not data:
            raise EOFError(f"the node closed the connection; heard before: {[type(m) for m, _ in self.heard]}")
        while data:
            buffer = self.wire.get_buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.heard.extend(self.wire.received(count, self._now()))
            data = data[count:]

    async def gone(self) -> list[Any]:
        """Wait until the node has closed, and return all that it said until then."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                while True:
                    await self._receive()
            except (EOFError, OSError):
                return [message for message, _ in self.heard]

    # --- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, kind: type[Any], *fields: Any, body: bytes | Sequence[bytes] = b"") -> Any:
        """Send a request and return its answer: a value, a reply, or the `Refused`."""
        call = self.wire.new_call()
        pieces = [body] if isinstance(body, bytes) else list(body)
        self.say(kind(call, *fields), *(piece for piece in pieces if piece))
        return await self.answer(call)

    async def ask_with_body(self, kind: type[Any], *fields: Any) -> tuple[Any, memoryview]:
        call = self.wire.new_call()
        self.say(kind(call, *fields))
        return await self._answered(call)

    async def answer(self, call: int) -> Any:
        message, _ = await self._answered(call)
        return msgspec.msgpack.decode(message.value, strict=False) if isinstance(message, wire.Answer) else message

    async def _answered(self, call: int) -> tuple[Any, memoryview]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                for place, (message, body) in enumerate(self.heard):
                    if getattr(message, "call", None) == call and not isinstance(message, wire.Progress):
                        del self.heard[place]
                        return message, body
                await self._receive()

    async def publish(self, topic: str, *payloads: bytes) -> Any:
        return await self.ask(wire.Publish, topic, body=batch_of(*payloads))

    async def attach(
        self,
        topic: str,
        subscription: str = "workers",
        *,
        consumer: int = 1,
        identity: str = "",
        credit: int = 0,
        start: Any = "earliest",
        **config: Any,
    ) -> Any:
        wanted = SubscriptionConfig(**config)
        name = identity or f"{id(self)}-{consumer}"
        return await self.ask(wire.Attach, consumer, name, topic, subscription, wanted, start, False, credit)


def batches_of(message: wire.Deliver | wire.Browsed, body: memoryview) -> list[Batch]:
    found, at = [], 0
    for _, count, nbytes, _ in message.parts:
        batch = decode(body[at : at + nbytes], limits=Limits())
        assert len(batch) == count
        found.append(batch)
        at += nbytes
    assert at == len(body)
    return found


def payloads_of(message: wire.Deliver | wire.Browsed, body: memoryview) -> list[bytes]:
    return [payload for batch in batches_of(message, body) for payload in batch.payloads()]
