"""A blocking consumer's answers: acks gather in the caller's thread and cross to the event loop together."""

from __future__ import annotations

import asyncio
from collections import deque

from pyroaring import BitMap64

from sealane.client.answers import ACK_BUFFER_SECONDS, Answers
from sealane.client.broker import Hold
from sealane.client.sync.portal import Portal
from sealane.node import Delivery


class SyncAnswers:
    """What messages call, in any thread, when they are answered."""

    def __init__(self, portal: Portal[object], answers: Answers, *, auto_ack: bool) -> None:
        self._portal = portal
        self._answers = answers
        self._auto_ack = auto_ack
        self._acks: deque[tuple[Delivery, int | BitMap64]] = deque()
        self._is_told = False
        """Whether the event loop knows that there are acks."""
        portal.before_end(self)

    @property
    def hold(self) -> Hold:
        return self._answers.hold

    def ack(self, delivery: Delivery, offsets: int | BitMap64, *, confirm: bool) -> None:
        """One offset or several. Without `confirm` it costs the caller next to nothing."""
        if self._auto_ack:
            return
        if confirm:
            self._portal.call(self._confirm, delivery, offsets)
            return
        self._portal.check()
        self._acks.append((delivery, offsets))
        # In this order: an ack that the event loop has just missed finds that it must be told again.
        if not self._is_told:
            self._is_told = True
            self._portal.soon(self._flush_soon)

    def nack(
        self, delivery: Delivery, offsets: BitMap64, *, delay: float | None, reason: str | None, confirm: bool
    ) -> None:
        async def work() -> None:
            self.flush()
            await self._answers.nack(delivery, offsets, delay=delay, reason=reason, confirm=confirm)

        self._portal.call(work)

    def extend(self, delivery: Delivery, seconds: float) -> None:
        self._portal.call(self._answers.extend, delivery, seconds)

    async def _confirm(self, delivery: Delivery, offsets: int | BitMap64) -> None:
        self.flush()
        what = BitMap64([offsets]) if isinstance(offsets, int) else offsets
        await self._answers.ack(delivery, what, confirm=True)

    def _flush_soon(self) -> None:
        asyncio.get_running_loop().call_later(ACK_BUFFER_SECONDS, self.flush)

    def flush(self) -> None:
        """On the event loop: hand over all acks that have gathered."""
        self._is_told = False
        singles: dict[Delivery, list[int]] = {}
        while True:
            try:
                delivery, offsets = self._acks.popleft()
            except IndexError:
                break
            if isinstance(offsets, int):
                singles.setdefault(delivery, []).append(offsets)
            else:
                self._answers.gather(delivery, offsets)
        for delivery, some in singles.items():
            self._answers.gather(delivery, BitMap64(some))
        self._answers.flush()

    def flush_last(self) -> None:
        self.flush()
