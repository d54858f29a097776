"""A stream of publishes with many under way: each is answered in the order in which they came, once it is durable."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import Message

from sealane.doors.grpc.calls import Call
from sealane.doors.grpc.room import Room
from sealane.node.receipts import Receipts
from sealane.prompt import Prompt

Said = Callable[[Sequence[Receipts]], Iterable[Message]]
"""The answers to what was published."""


class _Begun(NamedTuple):
    durable: Sequence[Prompt[Receipts]]
    nbytes: int
    said: Said


class InOrder:
    """One stream's answers. `room` is taken by who reads; what was answered is given back here."""

    def __init__(self, call: Call[Any], room: Room) -> None:
        self._call = call
        self._room = room
        self._line: deque[_Begun] = deque()
        self._more = asyncio.Event()
        """Something has begun, or nothing more will."""

    def add(self, durable: Sequence[Prompt[Receipts]], nbytes: int, said: Said) -> None:
        """This was begun: it is answered behind all before it."""
        for prompt in durable:
            prompt.when_done(_heard)
        self._line.append(_Begun(durable, nbytes, said))
        self._more.set()

    def refuse(self, error: Exception) -> None:
        """The stream ends with this, behind all before it."""
        refused: Prompt[Receipts] = Prompt()
        refused.set_exception(error)
        self.add([refused], 0, lambda receipts: ())

    async def run(self, read: Coroutine[Any, Any, None]) -> None:
        """Let `read` begin one after the other, and answer. Raises what the first that was refused was refused with."""
        reading = asyncio.create_task(read, name="grpc publishes")
        reading.add_done_callback(self._read)
        # Whoever has to end hears of all that came before that.
        self._call.stay.stop = reading.cancel
        try:
            await self._answer_all(reading)
            if self._call.stay.why is not None:
                raise self._call.stay.why
            reading.result()
        finally:
            reading.cancel()
            self._room.give(self._room.taken_bytes)

    async def _answer_all(self, reading: asyncio.Task[None]) -> None:
        while self._line or not reading.done():
            if not self._line:
                self._more.clear()
                await self._more.wait()
                continue
            durable, nbytes, said = self._line.popleft()
            for message in said([await prompt for prompt in durable]):
                await self._call.answer(message)
            self._room.give(nbytes)

    def _read(self, reading: asyncio.Task[None]) -> None:
        _heard(reading)
        self._more.set()


def _heard(outcome: asyncio.Future[Any]) -> None:
    """Whoever waits for it is told; if nobody does any more, that is no fault of anybody's."""
    if not outcome.cancelled():
        outcome.exception()
