"""One connection's protocol, for both of its ends: what may be said when, which requests are open, who is silent.

The shell around it (`doors/native`, `client/remote`) moves bytes and tells the time; everything else is decided here.

    GREETING ──Hello──▶ GREETED ──Welcome──▶ OPEN ──Goodbye "draining"──▶ DRAINING
        │                  │                   │                             │
        └──────────────────┴─ any other Goodbye, a protocol error ───────────┴──────▶ CLOSED
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Literal, get_args

import msgspec

from sealane.wire.errors import ProtocolError
from sealane.wire.frames import (
    ANSWER_HEADER_BYTES_MAX,
    HEADER_BYTES_MAX,
    HELLO_BYTES_MAX,
    Buffer,
    FrameReader,
    frame,
)
from sealane.wire.messages import AnyMessage, Goodbye, Hello, Ping, Pong, Reply, Request, ToClient, ToNode, Welcome

HANDSHAKE_SECONDS_MAX = 10.0
"""From the first byte to `Welcome`; whoever takes longer is cut off, and cannot fill the node with half connections."""
FRAME_SECONDS_MAX = 60.0
"""For one frame from its first byte to its last: 8 MiB over a slow line, but not a byte a minute for ever."""
SILENT_HEARTBEATS_MAX = 3
"""A peer that says nothing for so many heartbeats is gone."""
CALLS_OPEN_MAX = 10_000
"""Requests that may wait for their answer on one connection."""
DRAINING = "draining"

Role = Literal["client", "node"]
Received = tuple[Any, memoryview]
"""A message and its body."""


class State(Enum):
    GREETING = "greeting"
    GREETED = "greeted"
    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"


_REQUESTS: frozenset[type] = frozenset(get_args(Request))
_REPLIES: frozenset[type] = frozenset(get_args(Reply))
_TO_NODE = frozenset(get_args(ToNode))
_TO_CLIENT = frozenset(get_args(ToClient))
_HEARD: dict[tuple[Role, State], frozenset[type]] = {
    ("node", State.GREETING): frozenset({Hello, Goodbye}),
    ("node", State.GREETED): frozenset({Goodbye}),
    ("node", State.OPEN): _TO_NODE - {Hello},
    ("node", State.DRAINING): _TO_NODE - {Hello},
    ("client", State.GREETING): frozenset({Goodbye}),
    ("client", State.GREETED): frozenset({Welcome, Goodbye}),
    ("client", State.OPEN): _TO_CLIENT - {Welcome},
    ("client", State.DRAINING): _TO_CLIENT - {Welcome},
}
"""What each end may hear in each state."""
_OTHER: dict[Role, Role] = {"client": "node", "node": "client"}

_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)
"""What a decoder raises at hostile bytes: most are its own errors, a nesting too deep is Python's."""

_encode = msgspec.msgpack.Encoder().encode
_DECODE = {"node": msgspec.msgpack.Decoder(ToNode).decode, "client": msgspec.msgpack.Decoder(ToClient).decode}


class Connection:
    """The state of one end. `now` is always a monotonic time in seconds."""

    def __init__(self, role: Role, scratch: memoryview, now: float) -> None:
        self.role: Role = role
        self.state = State.GREETING
        self.heartbeat_seconds: float | None = None
        self.calls: set[int] = set()
        """Requests that were not answered yet."""
        header_bytes_max = HEADER_BYTES_MAX if role == "node" else ANSWER_HEADER_BYTES_MAX
        self._reader = FrameReader(scratch, HELLO_BYTES_MAX, header_bytes_max)
        self._decode = _DECODE[role]
        self._hears_when_open = _HEARD[role, State.OPEN]
        self._says_when_open = _HEARD[_OTHER[role], State.OPEN]
        self._last_call = 0
        self._began = now
        self._heard = now
        self._spoke = now
        self._midway_since: float | None = None
        self.get_buffer = self._reader.get_buffer

    # --- hearing ------------------------------------------------------------------------------------------------------

    def received(self, count: int, now: float) -> Iterator[Received]:
        """What is complete with the `count` bytes that were written into `get_buffer()`, to be handled one by one.

        Raises `ProtocolError` after what was sound: then `farewell` is to be sent, and the connection closed. After
        the last word, of either side, nothing is heard.
        """
        frames = self._reader.received(count)
        self._heard = now
        if not self._reader.midway:
            self._midway_since = None
        elif frames or self._midway_since is None:
            self._midway_since = now
        for header, body in frames:
            if self.state is State.CLOSED:
                return
            yield self._understand(header), body
        if self._reader.error is not None and self.state is not State.CLOSED:
            raise self._reader.error

    def _understand(self, header: memoryview) -> Any:
        try:
            message = self._decode(header)
        except _UNREADABLE as error:
            raise ProtocolError("bad-message", f"a header cannot be understood: {error}") from None
        kind = type(message)
        # Nearly always it is open, and looking an enum's member up takes longer than anything else here.
        is_open = self.state is State.OPEN
        if kind not in (self._hears_when_open if is_open else _HEARD.get((self.role, self.state), ())):
            raise ProtocolError("unexpected-message", f"{kind.__name__} may not be said while {self.state.value}")
        if kind in _REPLIES:
            if message.call not in self.calls:
                raise ProtocolError(
                    "unexpected-message", f"{kind.__name__} answers call {message.call}, which is not open"
                )
            self.calls.discard(message.call)
        elif kind in _REQUESTS:
            self._begin_call(message)
        else:
            self._live(message)
        return message

    def _live(self, message: Any) -> None:
        """What is heard, or said, of the connection's own life."""
        kind = type(message)
        if kind is Hello:
            self.state = State.GREETED
        elif kind is Welcome:
            self._open(message)
        elif kind is Goodbye:
            self.state = State.DRAINING if message.code == DRAINING and self.heartbeat_seconds else State.CLOSED

    def _begin_call(self, request: Any) -> None:
        call: int = request.call
        if call == 0:
            return  # Nobody waits for an answer.
        if call in self.calls or call < 0:
            raise ProtocolError("unexpected-message", f"call {call} of {type(request).__name__} is open already")
        if len(self.calls) >= CALLS_OPEN_MAX:
            raise ProtocolError("unexpected-message", f"{CALLS_OPEN_MAX:,} calls are open; wait for answers")
        self.calls.add(call)

    # --- speaking -----------------------------------------------------------------------------------------------------

    def new_call(self) -> int:
        """The number of the next request."""
        self._last_call += 1
        return self._last_call

    def say(self, message: AnyMessage, body: Sequence[Buffer] = (), *, now: float) -> list[Buffer]:
        """What to write for this message, in pieces."""
        kind = type(message)
        # What the other end may hear is what this one may say.
        is_open = self.state is State.OPEN
        allowed = self._says_when_open if is_open else _HEARD.get((_OTHER[self.role], self.state), frozenset())
        assert kind in allowed or kind is Goodbye, f"{kind.__name__} while {self.state.value}"
        if kind in _REPLIES:
            self.calls.discard(message.call)  # type: ignore[union-attr]
        elif kind in _REQUESTS:
            self._begin_call(message)
        else:
            self._live(message)
        self._spoke = now
        return frame(_encode(message), body)

    def farewell(self, error: ProtocolError, now: float) -> list[Buffer]:
        """The last word to a peer that broke the protocol."""
        return self.say(Goodbye(error.code, error.problem), now=now)

    def _open(self, welcome: Welcome) -> None:
        self.state = State.OPEN
        self.heartbeat_seconds = welcome.heartbeat_seconds
        self._reader.frame_bytes_max = welcome.frame_bytes_max

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float, *, deaf: bool = False) -> list[Buffer]:
        """Called about once a second: a heartbeat if one is due. Raises `ProtocolError` if the peer is too slow.

        `deaf`: this end itself did not read since the last tick, so the peer's silence says nothing.
        """
        if deaf:
            self._heard = now
            if self._midway_since is not None:
                self._midway_since = now
        if self.state in (State.GREETING, State.GREETED):
            if now - self._began > HANDSHAKE_SECONDS_MAX:
                problem = f"the handshake was not done within {HANDSHAKE_SECONDS_MAX:g} s"
                raise ProtocolError("too-slow", problem)
            return []
        if self._midway_since is not None and now - self._midway_since > FRAME_SECONDS_MAX:
            raise ProtocolError("too-slow", f"a frame was not complete within {FRAME_SECONDS_MAX:g} s")
        if self.heartbeat_seconds is None or self.state is State.CLOSED:
            return []
        silence = now - self._heard
        if silence > self.heartbeat_seconds * SILENT_HEARTBEATS_MAX:
            raise ProtocolError("silent", f"nothing was heard for {silence:.0f} s")
        if now - self._spoke < self.heartbeat_seconds and silence < self.heartbeat_seconds:
            return []
        return self.say(Ping(), now=now)

    def pong(self, now: float) -> list[Buffer]:
        return self.say(Pong(), now=now)
