"""One TCP connection to a node: bytes in and out around `wire.Connection`, and who waits for which answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import msgspec

from sealane.client.remote.addresses import Address
from sealane.client.remote.credentials import Shown
from sealane.client.remote.requests import check_size
from sealane.errors import LimitExceeded, SealaneError, Unavailable
from sealane.sockets import prepare, write_pieces
from sealane.wire.connection import CALLS_OPEN_MAX, DRAINING, Connection, State
from sealane.wire.errors import ProtocolError
from sealane.wire.faults import CODES, error_of
from sealane.wire.frames import Buffer
from sealane.wire.messages import Deliver, Ended, Goodbye, Hello, Note, Ping, Pong, Progress, Refused, Revoke, Welcome
from sealane.wire.outbox import Outbox
from sealane.wire.signing import Signer

UNSENT_BYTES_MAX = 2 << 20
"""What may wait to be sent before publishes and requests wait themselves: a few large batches keep the line busy."""
TICK_SECONDS = 1.0
DEAF_SECONDS = 1.0
"""A tick that is later than this says nothing about the node."""
CALLS_SPARE = 1_000
"""Calls that are kept free for what cannot wait: consumers that come and go."""

Answered = Callable[[Any, memoryview, SealaneError | None], None]
"""Told the answer and its body, or why there is none: the link is lost, or the request is larger than can be."""

_NO_BODY = memoryview(b"")
_OPEN = State.OPEN
_TO_CONSUMERS = frozenset({Deliver, Revoke, Ended})
_OF_ITSELF = frozenset({Ping, Pong, Progress, Welcome, Goodbye})


class LinkLost(Unavailable):
    """The connection ended before the node had answered: whether it did what was asked is not known."""


class LinkUser(Protocol):
    """Who is told what happens on a link. Nothing here may raise."""

    def heard(self, link: Link, message: Any, body: memoryview) -> None:
        """A `Deliver`, `Revoke` or `Ended`."""

    def writable(self, link: Link) -> None:
        """There is room again, for those who waited for it."""

    def draining(self, link: Link) -> None:
        """The node wants to stop: it takes nothing new, and answers what it has begun."""

    def lost(self, link: Link, error: SealaneError) -> None:
        """It is over; every call has been told."""


class Link(asyncio.BufferedProtocol):
    """Opened by `open_link`. After the loss of the connection everything fails at once; nothing is tried again here."""

    def __init__(self, address: Address, hello: Hello, shown: Shown, scratch: memoryview, user: LinkUser) -> None:
        self.address = address
        self.generation = 0
        """Which link of a reconnecting one it is, from 1."""
        self.welcome: Welcome | None = None
        self.paused = False
        """Whether so much waits to be sent that publishers should wait too."""
        self.error: SealaneError | None = None
        self.cause: Exception | None = None
        """What the transport said when it was lost, if it said something."""
        self._hello = msgspec.structs.replace(hello, credentials=shown.credentials)
        self._shown = shown
        self._signer: Signer | None = None
        """There if the node wants signatures on what is published."""
        self._user = user
        self._loop = asyncio.get_running_loop()
        self._wire = Connection("client", scratch, self._loop.time())
        self._calls: dict[int, Answered] = {}
        self._progress: dict[int, Callable[[int, int], None]] = {}
        self._outbox = Outbox(self._loop.call_soon, self._send)
        self._ticking: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._room: list[asyncio.Future[None]] = []
        self.welcomed: asyncio.Future[Welcome] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()

    # --- speaking -----------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether something said now may reach the node."""
        return self.error is None

    @property
    def takes_requests(self) -> bool:
        """Whether the node takes something new."""
        return self.error is None and self._wire.state is _OPEN

    @property
    def takes_publishes(self) -> bool:
        """Whether a publish may be sent now, and there is room for it: half of the calls is for everything else."""
        return (
            not self.paused
            and self.error is None
            and self._wire.state is _OPEN
            and len(self._calls) < CALLS_OPEN_MAX // 2
        )

    def ask(
        self,
        request: Any,
        body: Sequence[Buffer],
        answered: Answered,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Send a request now; `answered` is called once, also when the link is lost first. Look for room before."""
        if self.error is not None:
            answered(None, _NO_BODY, self._why_lost())
            return
        assert self.welcome is not None, "a link is used once its handshake is done"
        call = request.call = self._wire.new_call()
        if self._signer is not None:
            self._signer.sign(request, body)
        pieces = self._wire.say(request, body, now=self._loop.time())
        try:
            check_size(pieces, self.welcome.frame_bytes_max)
        except LimitExceeded as error:
            self._wire.calls.discard(call)
            if self._signer is not None:
                self._signer.unsent(request)
            answered(None, _NO_BODY, error)
            return
        self._calls[call] = answered
        if progress is not None:
            self._progress[call] = progress
        self._outbox.write(pieces)

    async def request(
        self, request: Any, body: Sequence[Buffer] = (), progress: Callable[[int, int], None] | None = None
    ) -> tuple[Any, memoryview]:
        """The answer and its body. Raises what the node refused it with, or `LinkLost`.

        Who is cancelled while waiting leaves the request to itself; its answer is not missed.
        """
        await self.room()
        answer: asyncio.Future[tuple[Any, memoryview]] = self._loop.create_future()

        def answered(reply: Any, body: memoryview, error: SealaneError | None) -> None:
            if answer.done():
                return
            if error is None and type(reply) is Refused:
                error = error_of(reply.code, reply.text, reply.fields)
            if error is None:
                answer.set_result((reply, body))
            else:
                answer.set_exception(error)

        self.ask(request, body, answered, progress)
        return await answer

    def tell(self, note: Note | Any) -> None:
        """Send something that is not answered. Nothing happens on a link that is lost."""
        if self.error is None:
            self._outbox.write(self._wire.say(note, now=self._loop.time()))

    async def room(self) -> None:
        """Until the node has caught up with what was sent to it."""
        while self.error is None and (self.paused or len(self._calls) >= CALLS_OPEN_MAX - CALLS_SPARE):
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._room.append(waiter)
            await waiter
        if self.error is not None:
            raise Unavailable(str(self.error)) from self.error

    def _make_room(self) -> None:
        waiters, self._room = self._room, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _send(self, pieces: list[Buffer], length: int) -> None:
        if self._transport is not None and not self._transport.is_closing():
            write_pieces(self._transport, pieces)

    # --- asyncio's side -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # By what it can do: uvloop's transports are not of asyncio's class.
        assert hasattr(transport, "writelines")
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        prepare(transport)
        self._outbox.write(self._wire.say(self._hello, now=self._loop.time()))
        self._tick_later()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._make_room()
        self._user.writable(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self.error is not None:
            return
        try:
            for message, body in self._wire.received(nbytes, self._loop.time()):
                kind = type(message)
                if kind in _TO_CONSUMERS:
                    self._user.heard(self, message, body)
                elif kind in _OF_ITSELF:
                    self._attend(message)
                else:
                    self._answer(message, body)
        except SealaneError as error:
            self._break_off(error if isinstance(error, ProtocolError) else ProtocolError("bad-message", str(error)))

    def _tick(self) -> None:
        now = self._loop.time()
        # A late tick means that this process was stuck: what the node sent meanwhile was not read yet.
        deaf = self._ticking is not None and now - self._ticking.when() > DEAF_SECONDS
        try:
            due = self._wire.tick(now, deaf=deaf)
        except ProtocolError as error:
            self._break_off(error)
            return
        if due:
            self._outbox.write(due)
        self._tick_later()

    def _tick_later(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        often = min(TICK_SECONDS, (self._wire.heartbeat_seconds or TICK_SECONDS) / 2)
        self._ticking = self._loop.call_later(often, self._tick)

    def eof_received(self) -> bool:
        return False  # The transport closes itself, and `connection_lost` tells the rest.

    def connection_lost(self, error: Exception | None) -> None:
        self.cause = error
        if self.error is None:
            self.error = self._lost(f": {error}" if error is not None else ", closed by the node")
        self._end()

    def _lost(self, how: str) -> LinkLost:
        return LinkLost(f"the connection to {self.address} was lost{how}")

    def _why_lost(self) -> LinkLost:
        return self.error if isinstance(self.error, LinkLost) else self._lost(f": {self.error}")

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _answer(self, reply: Any, body: memoryview) -> None:
        answered = self._calls.pop(reply.call)
        if self._progress:
            self._progress.pop(reply.call, None)
        answered(reply, body, None)
        if self._room:
            self._make_room()

    def _attend(self, message: Any) -> None:
        """What is said of the link's own life, and of how far a request is."""
        kind = type(message)
        if kind is Ping:
            self._outbox.write(self._wire.pong(self._loop.time()))
        elif kind is Pong:
            pass
        elif kind is Progress:
            if (told := self._progress.get(message.call)) is not None:
                told(message.done, message.total)
        elif kind is Welcome:
            self.welcome = message
            self._signer = self._shown.signer(message)
            self._tick_later()
            if not self.welcomed.done():
                self.welcomed.set_result(message)
        else:
            self._farewell(message)

    def _farewell(self, goodbye: Goodbye) -> None:
        if goodbye.code == DRAINING:
            self._user.draining(self)
            return
        if goodbye.code in CODES:
            self.error = error_of(goodbye.code, goodbye.text, goodbye.fields)
        elif self.welcome is None:
            self.error = ProtocolError(goodbye.code, goodbye.text)
        else:
            self.error = self._lost(f": the node said {goodbye.code!r}: {goodbye.text}")
        self.abort()

    def _break_off(self, error: ProtocolError) -> None:
        """The node broke the protocol, or fell silent: say so, and have done with it."""
        if self._wire.state is not State.CLOSED:
            self._outbox.write(self._wire.farewell(error, self._loop.time()))
            self._outbox.flush()
        self.error = error if self.welcome is None else self._lost(f": {error.problem}")
        self.abort()

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Say goodbye, and let what was said go out, as long as that needs no waiting for the node."""
        if self.error is not None:
            self.abort()
            return
        self._outbox.write(self._wire.say(Goodbye("closing", "the client is done"), now=self._loop.time()))
        self._outbox.flush()
        self.error = LinkLost(f"the connection to {self.address} was closed here")
        if self._transport is not None:
            if self._transport.get_write_buffer_size():
                self._transport.abort()
            else:
                self._transport.close()

    def abort(self) -> None:
        if self.error is None:
            self.error = LinkLost(f"the connection to {self.address} was cut here")
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        error = self.error
        assert error is not None
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._outbox.discard()
        calls, self._calls = self._calls, {}
        self._progress.clear()
        lost = self._why_lost()
        for answered in calls.values():
            answered(None, _NO_BODY, lost)
        self._make_room()
        if not self.welcomed.done():
            self.welcomed.set_exception(error)
            self.welcomed.exception()  # Who opens the link may have given up waiting; then nobody looks.
        if not self.closed.done():
            self.closed.set_result(None)
        self._user.lost(self, error)
