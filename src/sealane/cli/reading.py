"""Reading a subscription: write, then acknowledge; what was not written goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from pyroaring import BitMap64

from sealane.cli.blocking import StandardOutput
from sealane.cli.formats import Format
from sealane.delivery.config import Mode
from sealane.errors import CannotOpen, LeaseLost, NotFound

if TYPE_CHECKING:
    from sealane.client import Lane, Message
    from sealane.node.starts import Start
    from sealane.security.envelopes import PrivateKey

MESSAGES_AHEAD = 1_000
"""Fetched and not yet written."""
SETTLE_SECONDS = 2.0
"""On Ctrl-C: how long the last acks may take."""
LOOK_SECONDS = 0.1
"""So long nothing came: then the node is asked whether there is more."""


@dataclass(frozen=True)
class Order:
    """What to read, and when to end."""

    topic: str
    subscription: str
    mode: Mode
    start: Start
    filter: str | None
    lease_seconds: float
    count: int | None
    follow: bool
    wait_seconds: float
    keys: Sequence[PrivateKey] | None = None


class Reader:
    """Reads until its order is carried out. Every message it counts was written, and its ack is durable."""

    def __init__(self, lane: Lane, order: Order, form: Format) -> None:
        self._lane = lane
        self._order = order
        self._form = form
        self._out = StandardOutput()
        self._fetched: list[Message] = []
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._stride = 1
        """Written and acknowledged together: few at first, since a reader such as `head` wants no more."""
        self._done = 0
        self._unopened: list[tuple[Message, str]] = []
        self.unopened = 0
        """Messages that the keys do not open: they go back, with the reason."""

    async def run(self) -> int:
        """Returns the number of messages."""
        fetching = asyncio.create_task(self._fetch())
        fetching.add_done_callback(lambda _: self._news.set())
        try:
            while not self._out.closed:
                if not self._fetched:
                    if fetching.done():
                        break
                    if not await self._more():
                        break
                    continue
                messages, self._fetched = self._fetched[: self._stride], self._fetched[self._stride :]
                self._stride = min(2 * self._stride, MESSAGES_AHEAD)
                if not self._fetched:
                    self._news.clear()
                self._room.set()
                await self._hand_over(messages)
        finally:
            fetching.cancel()
            await asyncio.wait([fetching])
            self._give_back(self._fetched)
            await self._refuse_unopened()
        if not fetching.cancelled():
            fetching.result()
        return self._done

    async def _fetch(self) -> None:
        order = self._order
        taken = 0
        consumption = self._lane.consume(
            order.topic,
            order.subscription,
            mode=order.mode,
            start=order.start,
            filter=order.filter,
            lease_seconds=order.lease_seconds,
            keys=order.keys,
            prefetch=MESSAGES_AHEAD if order.count is None else min(MESSAGES_AHEAD, order.count),
        )
        async with consumption:
            async for message in consumption:
                self._fetched.append(message)
                self._news.set()
                taken += 1
                if taken == order.count:
                    return
                while len(self._fetched) >= MESSAGES_AHEAD:
                    self._room.clear()
                    await self._room.wait()

    async def _more(self) -> bool:
        """Wait for messages; false when it is time to end."""
        if self._order.follow:
            await self._news.wait()
            return True
        if await self._came_within(min(LOOK_SECONDS, self._order.wait_seconds)):
            return True
        if await self._is_drained():
            return bool(self._fetched)
        return await self._came_within(self._order.wait_seconds)

    async def _came_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _is_drained(self) -> bool:
        """Whether the node has nothing left for this subscription, be it ready, waiting or with others."""
        if self._order.mode == "broadcast":
            return False  # Each consumer has a position of its own, which is not told.
        try:
            described = await self._lane.describe_topic(self._order.topic)
        except NotFound:
            return False
        return any(each.name == self._order.subscription and each.depth == 0 for each in described.subscriptions)

    async def _hand_over(self, messages: list[Message]) -> None:
        messages, pieces = await self._written(messages)
        writing = asyncio.create_task(self._out.write(pieces))
        try:
            while not writing.done():
                await asyncio.wait([writing], timeout=self._order.lease_seconds / 3)
                if not writing.done():
                    await self._extend(messages)  # A pager that waits for its reader is no dead consumer.
        except asyncio.CancelledError:
            self._out.stop()
            try:
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._settle(messages, await writing)
            except TimeoutError:
                self._give_back(messages)  # Whoever reads the output takes nothing, and may never do.
            raise
        await self._settle(messages, writing.result())

    async def _written(self, messages: list[Message]) -> tuple[list[Message], list[bytes]]:
        """Those that can be written, and how; the others are given back with the reason."""
        readable, pieces = [], []
        for message in messages:
            try:
                pieces.append(self._form.write(message))
                readable.append(message)
            except CannotOpen as error:
                typer.echo(f"warning: {error}", err=True)
                self.unopened += 1
                self._unopened.append((message, error.reason))
        if self._order.follow:
            await self._refuse_unopened()
        return readable, pieces

    async def _refuse_unopened(self) -> None:
        """Without --follow at the end, or else they would come again and again in the meantime."""
        unopened, self._unopened = self._unopened, []
        for message, reason in unopened:
            with suppress(LeaseLost):
                await message.nack(reason=reason, confirm=True)

    async def _settle(self, messages: list[Message], written: int) -> None:
        self._give_back(messages[written:])
        for (hold, partition, lease), offsets in _by_lease(messages[:written]).items():
            try:
                await hold.ack(partition, lease, offsets)
            except LeaseLost as error:
                typer.echo(f"warning: {error}; what was written may come again", err=True)
        self._done += written

    def _give_back(self, messages: list[Message]) -> None:
        for (hold, partition, lease), offsets in _by_lease(messages).items():
            hold.release(partition, lease, offsets)

    async def _extend(self, messages: list[Message]) -> None:
        for message in {message.lease()[1:3]: message for message in messages}.values():
            try:
                await message.extend(self._order.lease_seconds)
            except LeaseLost:
                pass  # Said when it is acknowledged.


def _by_lease(messages: list[Message]) -> dict[tuple[Any, int, int], BitMap64]:
    found: dict[tuple[Any, int, int], BitMap64] = {}
    for message in messages:
        hold, partition, lease, offsets = message.lease()
        held = found.setdefault((hold, partition, lease), BitMap64())
        held |= offsets
    return found
