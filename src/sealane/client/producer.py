"""A producer: one message at a time at the speed of batches, with back-pressure, in order, each stored once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

import msgspec

from sealane.errors import Closed
from sealane.message import Batch, Row
from sealane.node.outgoing import Outgoing
from sealane.node.receipts import Receipts

BATCH_MESSAGES = 5_000
BATCH_BYTES = 1 << 20
"""A batch is sent at this size, or when the event loop comes round and nothing is on its way."""
BATCHES_IN_FLIGHT = 4
"""More would only add memory: the node commits one group while the next is gathered."""


class Producer:
    """`send` returns once the message is buffered; `flush`, or leaving the `async with` block, when all are durable.

    A failure is raised by the next `send` or `flush`; nothing that was sent after the failed batch is stored then.
    """

    def __init__(
        self,
        outgoing: Outgoing,
        publish: Callable[[Batch], Awaitable[Receipts]],
        identity: bytes,
        prepare: Callable[[], Awaitable[Outgoing]] | None = None,
    ) -> None:
        """`prepare` gives what builds the batches from now on: the keys that they are sealed for may change."""
        self._outgoing = outgoing
        self._publish = publish
        self._identity = identity
        self._prepare = prepare
        self._messages_max = BATCH_MESSAGES
        self._sequence = 0
        # What is buffered is in one of the two: in `_payloads` while no message has anything beside its payload.
        self._payloads: list[bytes] = []
        self._rows: list[Row] = []
        self._buffered_bytes = 0
        self._in_flight: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None
        """What went wrong first; `send` and `flush` raise it."""
        self._scheduled: asyncio.Handle | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    async def send(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        priority: int = 5,
        ttl: float | None = None,
        delay: float = 0,
    ) -> None:
        """Buffer a message; waits only while the node is behind by the buffers' size."""
        self._check()
        if self._prepare is not None:
            await self._take_up(self._prepare)
        plain = key is None and headers is None and priority == 5 and ttl is None and not delay
        if plain and not self._rows and type(payload) is bytes:
            # Most messages have only a payload: a row of its own for each would take as long as all the rest.
            self._payloads.append(payload)
        else:
            row = self._outgoing.row(payload, key=key, headers=headers, priority=priority, ttl=ttl, delay=delay)
            self._buffer_rows([row])
        self._buffered_bytes += len(payload)
        if self._is_full():
            await self._dispatch_when_there_is_room()
        elif self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._dispatch_if_idle)

    async def send_rows(self, rows: list[Row]) -> None:
        """As `send`, for messages that were gathered elsewhere, about a batch of them at most."""
        self._check()
        if self._prepare is not None:
            await self._take_up(self._prepare)
            if len(rows) > self._messages_max:
                for start in range(0, len(rows), self._messages_max):
                    await self.send_rows(rows[start : start + self._messages_max])
                return
        row_bytes = sum(len(row.payload) for row in rows)
        messages = len(self._payloads) + len(self._rows) + len(rows)
        if messages > self._messages_max or self._buffered_bytes + row_bytes > BATCH_BYTES:
            await self._dispatch_when_there_is_room()
        self._buffer_rows(rows)
        self._buffered_bytes += row_bytes
        if not self._in_flight:
            self._dispatch()
        elif self._is_full():
            await self._dispatch_when_there_is_room()

    async def _take_up(self, prepare: Callable[[], Awaitable[Outgoing]]) -> None:
        outgoing = await prepare()
        if outgoing is not self._outgoing:
            self._outgoing = outgoing
            self._messages_max = outgoing.messages_max(BATCH_MESSAGES)
        self._check()

    def _buffer_rows(self, rows: list[Row]) -> None:
        if self._payloads:
            self._rows, self._payloads = [Row(payload) for payload in self._payloads], []
        self._rows += rows

    def _is_full(self) -> bool:
        return len(self._payloads) + len(self._rows) >= self._messages_max or self._buffered_bytes >= BATCH_BYTES

    async def _dispatch_when_there_is_room(self) -> None:
        while len(self._in_flight) >= BATCHES_IN_FLIGHT:
            self._room.clear()
            await self._room.wait()
            self._check()
        self._dispatch()

    async def flush(self) -> None:
        """Return when everything sent so far is durable; raise what went wrong."""
        self._dispatch()
        while self._in_flight:
            await asyncio.wait(self._in_flight)
            self._dispatch()
        self._check()

    def _dispatch_if_idle(self) -> None:
        self._scheduled = None
        if not self._in_flight:
            self._dispatch()

    def _dispatch(self) -> None:
        payloads, rows = self._payloads, self._rows
        if not (payloads or rows) or self.error is not None:
            return
        self._payloads, self._rows, self._buffered_bytes = [], [], 0
        try:
            batch = self._outgoing.build(rows) if rows else self._outgoing.build_plain(payloads)
        except Exception as error:
            self.error = error
            return
        meta = msgspec.structs.replace(batch.meta, producer=self._identity, sequence=self._sequence)
        self._sequence += 1
        task = asyncio.get_running_loop().create_task(self._send(batch.with_meta(meta)))
        self._in_flight.add(task)
        task.add_done_callback(self._landed)

    async def _send(self, batch: Batch) -> None:
        if self.error is not None:
            return
        try:
            await self._publish(batch)
        except Exception as error:
            # Known before the batches behind this one, which are on their way already, have a chance to be stored.
            self.error = self.error or error

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if task.cancelled():
            self.error = self.error or Closed("the producer was cancelled; what it had not flushed may be missing")
        self._room.set()
        if not self._in_flight:
            self._dispatch()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
        if self._closed:
            raise Closed("the producer is closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Flush, unless the block ended in an error: then what is buffered is dropped and nobody waits."""
        try:
            if kind is None:
                await self.flush()
        finally:
            self.close()

    def close(self) -> None:
        """Take no more; what is buffered is dropped."""
        self._closed = True
        if self._scheduled is not None:
            self._scheduled.cancel()
