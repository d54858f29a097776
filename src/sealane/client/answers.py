"""A consumer's answers: acks gather for a few milliseconds and go together; the rest goes at once."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

from pyroaring import BitMap64

from sealane.client.broker import DistantHold, Hold
from sealane.errors import Closed, InvalidArgument, NotFound
from sealane.node import Delivery

ACK_BUFFER_SECONDS = 0.002
ACK_BUFFER_MESSAGES = 1_000
"""So many acks do not wait any longer."""


class Answers:
    """What messages call when they are answered. Lives on after its consumer has left the loop."""

    __slots__ = ("__weakref__", "_acks", "_auto_ack", "_buffered", "_closed", "_distant", "_timer", "hold")

    def __init__(self, hold: Hold, *, auto_ack: bool) -> None:
        self.hold = hold
        self._distant = hold if isinstance(hold, DistantHold) else None
        self._auto_ack = auto_ack
        self._acks: dict[tuple[int, int], BitMap64] = {}
        self._buffered = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def ack(self, delivery: Delivery, offsets: BitMap64, *, confirm: bool) -> None:
        if self._auto_ack:
            return
        self._check_open()
        if confirm:
            self.flush()
            await self.hold.ack(delivery.partition, delivery.lease, offsets)
            return
        self.gather(delivery, offsets)

    def ack_one(self, delivery: Delivery, offset: int) -> None:
        """An ack of one message that nobody waits for: most are."""
        if self._auto_ack:
            return
        if self._closed:
            self._check_open()
        place = (delivery.partition, delivery.lease)
        gathered = self._acks.get(place)
        if gathered is None:
            self._acks[place] = gathered = BitMap64()
        gathered.add(offset)
        self._buffered += 1
        if self._timer is None or self._buffered >= ACK_BUFFER_MESSAGES:
            self._flush_in_time()

    def gather(self, delivery: Delivery, offsets: BitMap64) -> None:
        """An ack that goes with others, soon."""
        place = (delivery.partition, delivery.lease)
        gathered = self._acks.get(place)
        if gathered is None:
            self._acks[place] = offsets
        else:
            gathered |= offsets
        self._buffered += len(offsets)
        self._flush_in_time()

    def _flush_in_time(self) -> None:
        if self._buffered >= ACK_BUFFER_MESSAGES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ACK_BUFFER_SECONDS, self.flush)

    async def nack(
        self, delivery: Delivery, offsets: BitMap64, *, delay: float | None, reason: str | None, confirm: bool
    ) -> None:
        if self._auto_ack:
            raise InvalidArgument("nack", "this consumer acknowledges automatically: there is nothing to give back")
        if delay is not None and not 0 <= delay < math.inf:
            raise InvalidArgument("delay", f"{delay} is not a number of seconds from 0")
        self._check_open()
        self.flush()
        await self.hold.nack(delivery.partition, delivery.lease, offsets, delay=delay, reason=reason, confirm=confirm)

    async def extend(self, delivery: Delivery, seconds: float) -> None:
        if not 0 < seconds < math.inf:
            raise InvalidArgument("seconds", f"{seconds} is not a number of seconds above 0")
        self._check_open()
        await self.hold.extend(delivery.partition, delivery.lease, seconds)

    def flush(self) -> None:
        """Hand the gathered acks over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        acks, self._acks, self._buffered = self._acks, {}, 0
        if self._distant is not None:
            if acks:
                self._distant.settle_together(acks)
            return
        for (partition, lease), offsets in acks.items():
            # A topic or subscription that was deleted has nothing left to acknowledge.
            with suppress(Closed, NotFound):
                self.hold.settle(partition, lease, offsets)

    def close(self) -> None:
        self.flush()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the lane is closed: its leases are over, and unanswered messages will be delivered again")
