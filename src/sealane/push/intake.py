"""Taking the messages of one request: never more in hand than a request takes, and none while one is under way."""

from __future__ import annotations

import asyncio
from collections import deque

from sealane.errors import SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery

REQUEST_BYTES_MAX = 4 << 20
"""About how much one request carries: beyond it, what came of other partitions goes with the next. A message that is
larger goes alone."""


class Intake:
    """A webhook's consumer, from attaching to leaving. `stirred` is set whenever something may have changed."""

    def __init__(self, name: str, stirred: asyncio.Event) -> None:
        self.consumer = Consumer(name, self._deliver, self._revoke, self._closed)
        self.error: SealaneError | None = None
        """Why nothing comes any more."""
        self._stirred = stirred
        self._waiting: deque[Delivery] = deque()

    def _deliver(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        self._stirred.set()

    def _revoke(self, revocation: Revocation) -> None:
        """Whether messages are still held is looked at when they are sent."""

    def _closed(self, error: SealaneError) -> None:
        self.error = error
        self._stirred.set()

    async def take(self, attachment: Attachment, messages_max: int) -> list[Delivery]:
        """Messages for one request; none if something else has stirred first."""
        in_hand = sum(map(len, self._waiting)) + self.consumer.credit
        attachment.resume()
        if in_hand < messages_max:
            attachment.add_credit(messages_max - in_hand)
        try:
            if not self._waiting:
                await self._stirred.wait()
            if self._waiting:
                # The other partitions are served in the same pass of the loop, or in the next.
                await asyncio.sleep(0)
        finally:
            attachment.pause()
        return self._next_request()

    def _next_request(self) -> list[Delivery]:
        taken: list[Delivery] = []
        nbytes = 0
        while self._waiting and nbytes < REQUEST_BYTES_MAX:
            delivery = self._waiting.popleft()
            nbytes += sum(part.batch.nbytes for part in delivery.parts)
            taken.append(delivery)
        return taken
