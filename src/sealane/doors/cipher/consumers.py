"""The two ways in which a client takes messages from a queue: they are pushed to it, or it asks for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sealane.doors.cipher.lives import Lives
from sealane.doors.cipher.outgoing import Outgoing
from sealane.doors.cipher.queue_consumer import QueueConsumer
from sealane.errors import SealaneError

LOOK_SECONDS = 0.25
"""Whoever fetches gets what is there: so long may it take to be read from disk."""


class Pushed(QueueConsumer):
    """Is sent messages as they come, so many ahead of its acks."""

    def __init__(
        self,
        name: str,
        lives: Lives,
        push: Callable[[Sequence[Outgoing]], None],
        gone: Callable[[SealaneError], None],
    ) -> None:
        """`gone` is told if the queue is: its client would wait for ever."""
        super().__init__(name, lives)
        self._push = push
        self._gone = gone

    def begin(self, window_messages: int) -> None:
        """Messages come from now on."""
        if not self.left:
            self.attachment.add_credit(window_messages)

    def wants(self) -> bool:
        return not self.left

    def hand_over(self, messages: Sequence[Outgoing]) -> None:
        self._push(messages)

    def freed(self, messages: int) -> None:
        if not self.left:
            self.attachment.add_credit(messages)

    def gone(self, error: SealaneError) -> None:
        self._gone(error)


class Fetching(QueueConsumer):
    """Is given one message when it asks."""

    def __init__(self, name: str, lives: Lives) -> None:
        super().__init__(name, lives)
        self._awaited: asyncio.Future[bytes] | None = None

    async def one(self) -> bytes | None:
        """The line of a message; None if there is none."""
        attachment = self.attachment
        if not attachment.may_be_served():
            return None
        self._awaited = asyncio.get_running_loop().create_future()
        attachment.add_credit(1)
        try:
            await asyncio.wait([self._awaited], timeout=LOOK_SECONDS)
            return self._awaited.result() if self._awaited.done() else None
        finally:
            self.consumer.credit = 0
            self._awaited = None

    def wants(self) -> bool:
        return not self.left and self._awaited is not None and not self._awaited.done()

    def hand_over(self, messages: Sequence[Outgoing]) -> None:
        assert self._awaited is not None, "it is wanted"
        self._awaited.set_result(b"".join([message.line for message in messages]))

    def freed(self, messages: int) -> None:
        """It takes the next when it asks."""

    def gone(self, error: SealaneError) -> None:
        """It is told when it asks."""
