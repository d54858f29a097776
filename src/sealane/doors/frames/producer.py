"""One producer: what it sends is published in its order, and it is slowed rather than anything lost."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from sealane.doors.frames.framing import Framing
from sealane.errors import (
    InvalidMessage,
    LimitExceeded,
    QueueFull,
    RateLimited,
    SchemaMismatch,
    SealaneError,
    StorageFull,
)
from sealane.log import get_log
from sealane.node.outgoing import BATCH_MESSAGES, Outgoing
from sealane.node.session import Session

if TYPE_CHECKING:
    from sealane.doors.frames.connection import FramesConnection

log = get_log("sealane.doors.frames")

FRAME_BYTES = 64
"""What a frame counts beside its bytes: about what the node keeps of it, so that many small ones count too."""
ROOM_LOOK_SECONDS = 0.002
ROOM_LOOK_SECONDS_MAX = 0.25
"""How soon a producer that waits for room looks again; twice as long each time, up to the second."""
QUOTA_LOOK_SECONDS_MAX = 5.0
"""The same where it waits for its quota, which says itself how long: it may be raised meanwhile."""


class FramesProducer:
    """One batch is under way at a time, and the next one is all that has come meanwhile: so nothing overtakes what is
    refused for now and tried again.
    """

    def __init__(self, connection: FramesConnection, session: Session) -> None:
        """Raises `Forbidden` if the session's principal may not publish there."""
        settings, limits = connection.door.settings, session.limits
        self._connection = connection
        self._session = session
        self._topic = session.allow("publish", connection.full_name(settings.topic))
        self._outgoing = Outgoing(limits, session.surroundings)
        self._bytes_max, self._limiting = min(
            (settings.frame_bytes_max, "doors.frames.frame_bytes_max"),
            (limits.payload_bytes_max, "limits.payload_bytes_max"),
        )
        self._framing = Framing(self._bytes_max)
        self._waiting: list[bytes] = []
        """Received, and not stored yet."""
        self._stored = 0
        self._publishing: asyncio.Task[None] | None = None
        self._declared = settings.mode != "queue"
        """Whether there is a queue that keeps what is published until a consumer comes."""
        self._fault: SealaneError | None = None
        """What is wrong with what came last: told when all before it is stored."""
        self._said_all = False

    # --- hearing ------------------------------------------------------------------------------------------------------

    @property
    def partial(self) -> bool:
        return self._framing.held_bytes > 0

    @property
    def busy(self) -> bool:
        return self._publishing is not None

    def hear(self, data: bytes) -> None:
        frames = self._framing.receive(data)
        if frames:
            self._connection.came_whole()
            self._connection.intake.begin(_cost(frames))
            self._waiting += frames
        if self._framing.too_long_bytes and self._fault is None:
            self._fault = LimitExceeded("frame", self._bytes_max, self._framing.too_long_bytes, setting=self._limiting)
            self._connection.intake.hold("requests")
        self._go_on()

    def said_all(self) -> None:
        """Nothing more comes: close the connection when what came is stored."""
        self._said_all = True
        if self.partial and self._fault is None:
            self._fault = InvalidMessage("the last frame", "is cut off: the connection ended before it had come whole")
        self._go_on()

    def _go_on(self) -> None:
        if self._publishing is None:
            if self._waiting:
                self._publishing = self._connection.door.spawn("frames producer", self._publish())
            else:
                self._all_is_stored()

    def _all_is_stored(self) -> None:
        if self._fault is not None:
            self._connection.turn_away(self._fault)
        elif self._said_all:
            self._connection.close()

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        try:
            while self._waiting:
                if not self._declared:
                    await self._declare()
                await self._connection.door.everyone_joined()
                await self._store(self._next())
        except SealaneError as error:
            self._fault = error
        except asyncio.CancelledError:
            log.warning("frames were received and are not stored: the node stops", frames=len(self._waiting))
            raise
        except Exception as error:
            self._connection.crashed("frames producer", error)
            return
        finally:
            self._publishing = None
            self._connection.intake.end(_cost(self._waiting))
            self._waiting.clear()
        self._all_is_stored()

    def _next(self) -> int:
        """How many of those that wait make a batch."""
        limits = self._outgoing.limits
        count = min(len(self._waiting), limits.batch_messages_max, BATCH_MESSAGES)
        first, bytes_max = self._waiting[:count], limits.batch_bytes_max // 2
        if _cost(first) <= bytes_max:
            return count
        return max(1, bisect_right(list(accumulate(_cost([frame]) for frame in first)), bytes_max))

    async def _store(self, count: int) -> None:
        """Publish so many of those that wait, or as many of them as there is room for."""
        pauses = _Pauses(self._connection)
        while True:
            try:
                batch = self._outgoing.build_plain(self._waiting[:count])
                await self._session.publish(self._topic, batch)
            except QueueFull as full:
                room = full.limit - full.value
                if 0 < room < count:
                    count = room
                else:
                    await pauses.wait(full)
            except (StorageFull, RateLimited) as full:
                await pauses.wait(full)
            except SchemaMismatch as error:
                if not error.index:
                    raise
                count = error.index  # Those before it are sound.
            else:
                break
        pauses.over()
        self._connection.intake.end(_cost(self._waiting[:count]))
        self._stored += count
        del self._waiting[:count]

    async def _declare(self) -> None:
        """Let there be the queue, so that messages wait in it for the first consumer: if the principal may."""
        pauses = _Pauses(self._connection)
        while not self._declared and self._session.may("consume", self._topic):
            try:
                await self._connection.door.declare_queue(self._session, self._topic)
                self._declared = True
            except (StorageFull, RateLimited) as full:
                await pauses.wait(full)
        self._declared = True
        pauses.over()

    def so_far(self) -> str:
        """What its client is told beside what is wrong, since nothing else tells it."""
        return f"; {self._stored:,} frames of this connection are stored, what came behind them is not"

    # --- its end ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """What was received is stored, and nothing more is."""

    def end(self) -> None:
        """The connection is gone: what was received is stored all the same."""


class _Pauses:
    """Waits for room with more patience each time; the producer is not read from meanwhile."""

    def __init__(self, connection: FramesConnection) -> None:
        self._connection = connection
        self._seconds = ROOM_LOOK_SECONDS
        self._waited = False

    async def wait(self, why: QueueFull | StorageFull | RateLimited) -> None:
        if not self._waited:
            self._waited = True
            log.debug("a producer waits", peer=self._connection.host, reason=str(why))
            self._connection.intake.hold("requests")
        asked = min(why.retry_after_seconds, QUOTA_LOOK_SECONDS_MAX) if isinstance(why, RateLimited) else 0.0
        await asyncio.sleep(max(self._seconds, asked))
        self._seconds = min(2 * self._seconds, ROOM_LOOK_SECONDS_MAX)

    def over(self) -> None:
        if self._waited and not self._connection.door.draining:
            self._connection.intake.let_go("requests")


def _cost(frames: list[bytes]) -> int:
    return sum(map(len, frames)) + FRAME_BYTES * len(frames)
