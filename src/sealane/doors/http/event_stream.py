"""A topic as server-sent events: what a browser's `EventSource` reads, and takes up again where it was.

One piece is read, written and waited for at a time: a client that reads slowly makes the node read slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sealane.doors.http.problem import problem_of
from sealane.errors import SealaneError, Unauthenticated, Unavailable
from sealane.log import get_log
from sealane.node.deliveries import Delivery
from sealane.node.following.follower import Followed, Follower
from sealane.node.message_json import part_json

HEARTBEAT_SECONDS = 15.0
"""A line is written at least so often: proxies and clients take a longer silence for a lost connection."""
LOOK_SECONDS = 1.0
"""How often a stream without messages looks whether it may go on, and for partitions that were added."""
RETRY_MILLISECONDS = 2_000
"""After so long a client comes back by itself."""
LAST_WORDS_SECONDS_MAX = 2.0
"""A stream that has to end waits so long for its client to take the last words, and is cut off then."""

_GONE = "these messages are not stored any more: they are past the topic's retention, or were damaged"
_ANOTHER_TOPIC = "the topic was deleted and made again since this position; reading begins at its start"

log = get_log("sealane.doors.http")

_encode = msgspec.json.Encoder().encode


class EventStream:
    """What one client is told, from its request to its last word."""

    def __init__(
        self, topic: str, follower: Follower, draining: asyncio.Future[None], abort: Callable[[], None]
    ) -> None:
        """It ends once `draining` is done; `abort` cuts the connection off."""
        self._topic = topic
        self._follower = follower
        self._draining = draining
        self._abort = abort
        self._over: SealaneError | None = None
        self._cutting_off: asyncio.TimerHandle | None = None
        draining.add_done_callback(self._drained)

    def close(self) -> None:
        """Nothing more is read for it. Idempotent."""
        self._draining.remove_done_callback(self._drained)
        self._follower.close()
        if self._cutting_off is not None:
            self._cutting_off.cancel()

    def shown_out(self, why: Unauthenticated) -> None:
        self._end(why)

    def _drained(self, draining: asyncio.Future[None]) -> None:
        self._end(Unavailable("the node is about to stop; come back to it later, or to another one"))

    def _end(self, why: SealaneError) -> None:
        if self._over is None:
            self._over = why
            self._cutting_off = asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS_MAX, self._abort)
            self._follower.wake()

    async def events(self) -> AsyncIterator[bytes]:
        """All that is written, piece by piece."""
        clock = asyncio.get_running_loop().time
        # Whoever loses the connection before the first message comes back to this place too.
        said = self._follower.position()
        yield f"retry: {RETRY_MILLISECONDS}\nid: {said}\n\n".encode()
        if self._follower.is_of_earlier_topic:
            yield _lost(said, None, None, _ANOTHER_TOPIC)
        spoken = clock()
        while self._over is None:
            if clock() - spoken >= HEARTBEAT_SECONDS:
                position, before = self._follower.position(), said
                said, spoken = position, clock()
                yield b":\n\n" if position == before else f":\nid: {position}\n\n".encode()
            try:
                followed = await self._follower.read()
            except SealaneError as error:
                self._end(error)
                break
            except OSError as error:
                log.warning("a stream of events ends", topic=self._topic, reason=str(error))
                self._end(Unavailable("the topic cannot be read at the moment; the node's log has more"))
                break
            if followed is None:
                await self._follower.wait(min(LOOK_SECONDS, max(0.0, spoken + HEARTBEAT_SECONDS - clock())))
                continue
            if followed.positions:
                yield self._written(followed)
                said, spoken = followed.positions[-1], clock()
            await asyncio.sleep(0)  # Others have their turn, however much there is to read.
        assert self._over is not None, "only that ends it"
        yield _event("bye", bytes(problem_of(self._over).body), b"retry: %d\n" % RETRY_MILLISECONDS)

    def _written(self, followed: Followed) -> bytes:
        if followed.lost is not None:
            first, stop = followed.lost
            return _lost(followed.positions[0], followed.partition, (first, stop - 1), _GONE)
        assert followed.part is not None
        part = followed.part
        delivery = Delivery(self._topic, followed.partition, "", 0, 0, (part,), ())
        return b"".join(
            b"id: %b\nevent: message\ndata: %b\n\n" % (position.encode(), _encode(message))
            for message, position in zip(part_json(delivery, part), followed.positions, strict=True)
        )


def _lost(position: str, partition: int | None, offsets: tuple[int, int] | None, detail: str) -> bytes:
    first, last = offsets or (None, None)
    told = {"partition": partition, "first": first, "last": last, "detail": detail}
    return _event("lost", _encode(told), f"id: {position}\n".encode())


def _event(name: str, data: bytes, fields: bytes = b"") -> bytes:
    return b"%bevent: %b\ndata: %b\n\n" % (fields, name.encode(), data)


class EventResponse(StreamingResponse):
    """The stream as an answer; whatever ends it, `ended` is called."""

    media_type = "text/event-stream"

    def __init__(self, stream: EventStream, ended: Callable[[], None]) -> None:
        # What comes is for now: nothing in between is to keep it, or to wait for more of it.
        super().__init__(stream.events(), headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
