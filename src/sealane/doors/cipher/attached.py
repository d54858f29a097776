"""The queues that one connection takes messages from: those that it consumes, and those that it fetches from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sealane.doors.cipher.consumers import Fetching, Pushed
from sealane.doors.cipher.outgoing import Outgoing
from sealane.doors.cipher.queue_consumer import QueueConsumer
from sealane.errors import InvalidArgument
from sealane.node.session import Session

if TYPE_CHECKING:
    from sealane.doors.cipher.connection import CipherConnection

QUEUES_MAX = 100
"""Queues that one connection consumes or fetches from."""


class AttachedConsumers:
    """By the topics that the queues are."""

    def __init__(self, connection: CipherConnection, session: Session) -> None:
        self._connection = connection
        self._door = connection.door
        self._session = session
        self._pushed: dict[str, Pushed] = {}
        self._fetching: dict[str, Fetching] = {}
        self._coming: QueueConsumer | None = None
        """One that does not take part yet."""
        self._numbers = itertools.count(1)
        self._paused = False

    def __iter__(self) -> Iterator[QueueConsumer]:
        return iter([*self._pushed.values(), *self._fetching.values()])

    @property
    def holds_any(self) -> bool:
        """Whether the client was handed something that it has not acknowledged."""
        return any(len(consumer.held) for consumer in self)

    # --- coming -------------------------------------------------------------------------------------------------------

    async def push(self, queue: str, push: Callable[[Sequence[Outgoing]], None]) -> Pushed | None:
        """Take part in a queue. None if it is consumed already; else messages come once the consumer has begun."""
        topic = self._connection.full_name(queue)
        known = self._pushed.get(topic)
        if known is not None and not known.left:
            return None
        consumer = Pushed(self._new_name(), self._door.lives, push, self._connection.turn_away)
        await self._attach(consumer, topic)
        self._let_go(known)
        self._pushed[topic] = consumer
        return consumer

    async def fetch(self, queue: str) -> bytes | None:
        """The line of one message; None if there is none."""
        topic = self._connection.full_name(queue)
        consumer = self._fetching.get(topic)
        if consumer is None or consumer.left:
            known, consumer = consumer, Fetching(self._new_name(), self._door.lives)
            await self._attach(consumer, topic)
            self._let_go(known)
            self._fetching[topic] = consumer
        return await consumer.one()

    def _new_name(self) -> str:
        """Raises `InvalidArgument` if there are too many."""
        if len(self._pushed) + len(self._fetching) >= QUEUES_MAX:
            raise InvalidArgument("queue", f"this connection takes from {QUEUES_MAX} already; open another one")
        return f"cipher:{self._connection.number}:{next(self._numbers)}"

    async def _attach(self, consumer: QueueConsumer, topic: str) -> None:
        self._coming = consumer
        try:
            await consumer.attach(self._session, topic, self._door.settings)
        finally:
            self._coming = None
        consumer.consumer.paused = self._paused
        if self._door.draining:
            consumer.leave()

    # --- all of them --------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """The client does not read: it is pushed no more, until what waits has become less."""
        self._paused = True
        for consumer in self:
            consumer.pause()

    def resume(self) -> None:
        self._paused = False
        for consumer in self:
            consumer.resume()

    def tidy(self) -> None:
        """Forget what is held no more."""
        for consumer in self:
            consumer.tidy()

    def leave(self) -> None:
        """Nothing more is delivered; what was may still be acknowledged."""
        for consumer in self:
            consumer.leave()

    def end(self) -> None:
        """The connection is gone: what was not acknowledged goes to others."""
        if self._coming is not None:
            self._coming.left = True
        for consumer in self:
            self._let_go(consumer)

    def _let_go(self, consumer: QueueConsumer | None) -> None:
        if consumer is not None:
            consumer.give_back()
            _ = self._door.spawn("end of a cipher consumer", consumer.end())
