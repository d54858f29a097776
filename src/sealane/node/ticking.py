"""A partition's timer: leases that end, retries and delays that are due, messages that expire."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sealane.delivery.subscription import Subscription
    from sealane.node.owner import PartitionOwner

TIMER_SECONDS_MAX = 1.0
"""The timer looks at the clock at least this often while something waits, so that a clock jump is noticed."""


class Ticker:
    """Calls the core when something is due. Nothing runs while nothing waits."""

    __slots__ = ("_at_us", "_closed", "_owner", "_timer")

    def __init__(self, owner: PartitionOwner) -> None:
        self._owner = owner
        self._timer: asyncio.TimerHandle | None = None
        self._at_us: int | None = None
        self._closed = False

    def arm(self) -> None:
        """Something may be due earlier than before, for anyone."""
        core = self._owner.core
        for reader in (*core.subscriptions.values(), *core.members.values()):
            self.arm_for(reader)

    def arm_for(self, reader: Subscription) -> None:
        """Something may be due earlier than before, for this one."""
        if self._closed:
            return
        next_us = reader.next_tick_us()
        if next_us is None or (self._at_us is not None and self._at_us <= next_us):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = min(max(next_us - self._owner.clock(), 0) / 1_000_000, TIMER_SECONDS_MAX)
        self._at_us = next_us
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = None
        self._at_us = None
        owner = self._owner
        try:
            now_us = owner.clock()
            for reader in (*owner.core.subscriptions.values(), *owner.core.members.values()):
                due = reader.next_tick_us()
                if due is not None and due <= now_us:
                    events = reader.tick(now_us)
                    owner.revoked(reader, events)
                    owner.note(reader, events)
            self.arm()
        except Exception as error:
            owner.distrust("timer", error)
