"""A blocking producer: messages gather in the caller's thread and cross to the event loop as batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from sealane.client.producer import BATCH_BYTES, BATCH_MESSAGES, Producer
from sealane.client.sync.portal import LOOK_SECONDS, Portal
from sealane.errors import Closed
from sealane.message import Row
from sealane.node.outgoing import Outgoing


class SyncProducer:
    """`send` returns once the message is buffered; `flush`, or leaving the `with` block, when all are durable.

    A failure is raised by the next `send` or `flush`; nothing that was sent after the failed batch is stored then.
    Several threads may send: the messages of each are stored in the order in which it sent them.
    """

    def __init__(self, portal: Portal[Any], producer: Producer, outgoing: Outgoing) -> None:
        self._portal = portal
        self._loop_side = producer
        self._outgoing = outgoing
        self._changed = threading.Condition(threading.Lock())
        self._rows: list[Row] = []
        self._row_bytes = 0
        self._is_told = False
        """Whether the event loop knows that there are rows."""
        self._error: BaseException | None = None
        self._closed = False
        self._passing_on = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(
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
        self._portal.check()  # Before the lock: in a forked child nobody is left to release it.
        row = self._outgoing.row(payload, key=key, headers=headers, priority=priority, ttl=ttl, delay=delay)
        with self._changed:
            self._check()
            self._rows.append(row)
            self._row_bytes += len(payload)
            tell, self._is_told = not self._is_told, True
            is_full = self._is_full()
        if tell:
            self._portal.soon(self._begin_passing_on)
        if is_full:
            self._wait_for_room()

    def flush(self) -> None:
        """Return when everything sent so far is durable; raise what went wrong."""
        self._portal.check()
        with self._changed:
            self._check()
        self._portal.call(self._flush)

    def _is_full(self) -> bool:
        return len(self._rows) >= BATCH_MESSAGES or self._row_bytes >= BATCH_BYTES

    def _wait_for_room(self) -> None:
        with self._changed:
            while self._is_full():
                self._changed.wait(LOOK_SECONDS)
                self._check()

    def _check(self) -> None:
        error = self._error or self._loop_side.error
        if error is not None:
            raise error
        if self._closed:
            raise Closed("the producer is closed")
        self._portal.check()

    # --- on the event loop --------------------------------------------------------------------------------------------

    def _begin_passing_on(self) -> None:
        task = asyncio.get_running_loop().create_task(self._pass_on())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self) -> None:
        # One at a time: rows are taken and given to the producer in one order.
        async with self._passing_on:
            try:
                while rows := self._take_rows():
                    await self._loop_side.send_rows(rows)
            except Exception as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()

    def _take_rows(self) -> list[Row]:
        with self._changed:
            rows, self._rows, self._row_bytes = self._rows, [], 0
            if not rows:
                self._is_told = False
            self._changed.notify_all()
            return rows

    async def _flush(self) -> None:
        await self._pass_on()
        if self._error is not None:
            raise self._error
        await self._loop_side.flush()

    def __enter__(self) -> Self:
        self._portal.call(self._loop_side.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Flush, unless the block ended in an error: then what is buffered is dropped and nobody waits."""
        try:
            if kind is None:
                self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._rows = []
            self._portal.soon(self._close)

    def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._loop_side.close()
