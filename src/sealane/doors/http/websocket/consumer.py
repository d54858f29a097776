"""One consumer of a WebSocket: what the node hands it, and what its client answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pyroaring import BitMap64

from sealane.doors.http.api.answers import moment
from sealane.doors.http.websocket.formats import Format
from sealane.doors.http.websocket.holdings import Found, Handed, Holdings, Leased
from sealane.doors.http.websocket.messages import Ack, Answering, Extend, Nack, Subscribe
from sealane.doors.http.websocket.problem_documents import problem_document
from sealane.errors import LeaseLost, SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery, offsets_of
from sealane.node.message_json import uuid_text

Say = Callable[[dict[str, Any]], None]


class SocketConsumer:
    """Made when a client asks for it; `attachment` is there a little later, and before the first message."""

    __slots__ = (
        "_asked",
        "_auto_ack",
        "_delivered",
        "_format",
        "_say",
        "attachment",
        "consumer",
        "held",
        "left",
        "number",
    )

    def __init__(self, number: int, name: str, wish: Subscribe, format: Format, say: Say) -> None:
        """Of this number to its client, and of this name to the node."""
        self.number = number
        self.consumer = Consumer(name, self._deliver, self._revoke, self._closed)
        self.attachment: Attachment | None = None
        self.held = Holdings()
        self.left = False
        """Whether nothing more will come to it."""
        self._asked = wish.credit
        self._auto_ack = wish.auto_ack
        self._format = format
        self._say = say
        self._delivered = 0

    @property
    def claims(self) -> int:
        """Messages that its client has asked for, and those that it has not answered for."""
        if self.left:
            return len(self.held)
        return len(self.held) + (self._asked if self.attachment is None else self.consumer.credit)

    # --- from the node ------------------------------------------------------------------------------------------------

    def _deliver(self, delivery: Delivery) -> None:
        for frame in self._format.frames(delivery):
            self._delivered += 1
            if not self._auto_ack:
                self.held.add(Handed(self._delivered, delivery.partition, delivery.lease, frame))
            self._say(
                {
                    "type": "deliver",
                    "consumer": self.number,
                    "delivery": self._delivered,
                    "deadline": None if self._auto_ack else moment(delivery.deadline_us),
                    "messages": frame.messages,
                }
            )
        if self._auto_ack and self.attachment is not None:
            offsets = BitMap64()
            for part in delivery.parts:
                offsets |= offsets_of(part)
            self.attachment.settle(delivery.partition, delivery.lease, offsets)

    def _revoke(self, revocation: Revocation) -> None:
        ids = self.held.revoke(revocation.partition, revocation.lease, revocation.offsets)
        if ids:
            self._say({"type": "revoked", "consumer": self.number, "ids": [uuid_text(each) for each in ids]})

    def _closed(self, error: SealaneError) -> None:
        self.left = True
        self._say({"type": "closed", "consumer": self.number, "problem": problem_document(error)})

    # --- taking -------------------------------------------------------------------------------------------------------

    def begin(self, attachment: Attachment) -> None:
        """It takes part: messages may come from now on."""
        self.attachment = attachment
        if not self.left:
            attachment.add_credit(self._asked)

    def add_credit(self, messages: int) -> None:
        if self.attachment is not None and not self.left:
            self.attachment.add_credit(messages)

    def pause(self) -> None:
        self.consumer.paused = True

    def resume(self) -> None:
        self.consumer.paused = False
        if self.attachment is not None:
            self.attachment.resume()

    def tidy(self) -> None:
        """Forget what it holds no more."""
        if self.attachment is not None:
            self.held.tidy(self.attachment.holds)

    # --- answering ----------------------------------------------------------------------------------------------------

    def settle(self, request: Ack) -> None:
        """An ack that nobody waits for."""
        attachment, found = self._find(request)
        for partition, lease, offsets in self.held.take(found):
            attachment.settle(partition, lease, offsets)

    async def ack(self, request: Ack) -> None:
        attachment, found = self._find(request)
        await _all(attachment.ack(*leased) for leased in self.held.take(found))

    async def nack(self, request: Nack) -> None:
        attachment, found = self._find(request)
        await _all(
            attachment.nack(*leased, delay=request.delay, reason=request.reason, confirm=request.call != 0)
            for leased in self.held.take(found)
        )

    async def extend(self, request: Extend) -> str:
        """The new deadline of the leases that these messages are under."""
        attachment, found = self._find(request)
        leases = {(handed.partition, handed.lease) for handed in found}
        return moment(min([await attachment.extend(*lease, request.seconds) for lease in leases]))

    def _find(self, request: Answering) -> tuple[Attachment, Found]:
        """Raises `LeaseLost` unless all of it is held."""
        try:
            found = self.held.find(request.delivery, request.ids)
        except KeyError as missing:
            what = "delivery" if request.delivery is not None else "message"
            detail = f"consumer {self.number} does not hold {what} {missing.args[0]} (any more); nothing was done"
            raise LeaseLost(self._subscription, detail) from None
        if not found:
            raise LeaseLost(self._subscription, "no message was named; nothing was done")
        assert self.attachment is not None, "it was handed something"
        return self.attachment, found

    @property
    def _subscription(self) -> str:
        return self.attachment.group.name if self.attachment is not None else ""

    # --- leaving ------------------------------------------------------------------------------------------------------

    def leave(self, unhandled: list[Leased] | None = None) -> None:
        """Take no more. Idempotent."""
        self.left = True
        if self.attachment is not None:
            self.attachment.leave(unhandled or [])

    async def end(self, *, node_stops: bool = False) -> None:
        """Its connection is gone: what it holds goes back."""
        self.leave()
        if self.attachment is not None:
            await self.attachment.end(node_stops=node_stops)

    async def unsubscribe(self) -> None:
        """Its client has had enough: what is unanswered goes back at once, and counts no attempt."""
        self.leave(self.held.take_all())
        await self.end()


async def _all(works: Iterable[Awaitable[None]]) -> None:
    """Side by side, since they share a commit then. Raises what the first of them raised, once all are done."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
