"""One WebSocket on the node's side: who is at its other end, and the bounds that hold for them.

There is no queue in between: what is heard is acted upon at once, and who says more than can be done is not read from
until it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from sealane.doors.authorization import credentials_of
from sealane.doors.deadlines import Deadline
from sealane.doors.http.authenticating import DOOR
from sealane.doors.http.connection import Upgrade
from sealane.doors.http.problem import Problem
from sealane.doors.http.websocket.conversation import Conversation
from sealane.doors.http.websocket.formats import Unreadable
from sealane.doors.http.websocket.framing import NOT_READABLE, Framing, Whole
from sealane.doors.http.websocket.messages import Hello
from sealane.doors.http.websocket.opening import Opening, OpeningRefused, read_opening, refusal
from sealane.doors.http.websocket.problem_documents import problem_document, problem_with
from sealane.doors.intake import Intake
from sealane.errors import InvalidMessage, SealaneError, Unauthenticated
from sealane.node.entrances import Entrance
from sealane.security.introductions import Introduction

if TYPE_CHECKING:
    from sealane.doors.http.websocket.conversations import Conversations

HELLO_SECONDS_MAX = 10.0
"""A client that has shown no credential when it opened the connection has so long to show one in its first message."""
HELLO_BYTES_MAX = 16 << 10
"""That message: twice what the longest token has."""
IN_FLIGHT_BYTES_MAX = 32 << 20
"""What one connection may have asked for without an answer: two of the largest messages. It is not read from beyond."""
UNSENT_BYTES = 256 << 10
"""What may wait to be sent before the consumers of a connection are given no more."""
PIECE_BYTES = 4 << 10
"""Read into frames at once, so that a heap of small messages is not acted upon before it is seen to be one."""
PING_SECONDS = 20.0
"""After so long a silence a client is asked whether it is there."""
PONG_SECONDS_MAX = 20.0
"""How long it may take to say so."""
FAREWELL_SECONDS_MAX = 5.0
"""A connection that is closed waits so long for its client to take the last words, and is cut off then."""
SHOWN_OUT_SECONDS_MAX = 2.0
"""The same for one whose credential is over."""

GOING_AWAY = 1001
WRONG_TYPE = 1003
REFUSED = 1008
FAILED = 1011


class WebSocketConnection(asyncio.Protocol):
    """Made by `Conversations.connect` for a request that wants to be one. Everything happens on the event loop."""

    def __init__(self, all_of_them: Conversations, number: int, upgrade: Upgrade) -> None:
        self._all = all_of_them
        self._number = number
        self._upgrade = upgrade
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._unsent: Deadline
        self._opening: Opening | None = None
        self._framing: Framing | None = None
        """There once the request was answered with 101."""
        self._conversation: Conversation | None = None
        """There once it is known who it is."""
        self._entering: asyncio.Task[None] | None = None
        self._entrance: Entrance | None = None
        self._intake = Intake(IN_FLIGHT_BYTES_MAX, all_of_them.budget)
        self._unread = bytearray()
        """Received, and not yet looked at."""
        self._messages: deque[Whole] = deque()
        """Looked at, and not yet acted upon: no more than fit in a piece."""
        self._writing_paused = False
        self._lost = False
        self._came = self._heard = self._loop.time()
        self._pinged = False
        self._partial_since: float | None = None
        self._closing_since: float | None = None

    # --- coming in ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNSENT_BYTES)
        self._unsent = Deadline(self._loop, self.transport)
        self._intake.open(_Valve(self))
        self._all.came(self)
        try:
            self._open()
        except OpeningRefused as refused:
            self._turn_away(refused.problem)
        except SealaneError as error:
            self._keep_out(error, 0)

    def _open(self) -> None:
        everyone, upgrade = self._all, self._upgrade
        self._opening = opening = read_opening(upgrade, everyone.settings, loopback_only=everyone.loopback_only)
        if everyone.draining or not everyone.has_node:
            state = "is about to stop" if everyone.draining else "is starting"
            raise OpeningRefused(Problem(503, f"the node {state}; try again soon", headers={"retry-after": "1"}))
        credentials = credentials_of(opening.authorization)
        if credentials is None and upgrade.certificate is None and not everyone.loopback_only:
            self._switch(opening)  # It may be a browser, which can show a token only in what it says.
        else:
            self._begin_entering(credentials, 0)

    def _switch(self, opening: Opening) -> Framing:
        """From here on it is frames that are exchanged."""
        self._framing = Framing(HELLO_BYTES_MAX)
        self.transport.write(opening.answer)
        return self._framing

    def _begin_entering(self, credentials: dict[str, Any] | None, call: int) -> None:
        self._entering = self._loop.create_task(self._enter(credentials, call), name="websocket entrance")
        self.look_whether_to_read()

    async def _enter(self, credentials: dict[str, Any] | None, call: int) -> None:
        """Find out who it is, which may take a while; until then nothing else is heard of it."""
        gate, upgrade, opening = self._all.gate, self._upgrade, self._opening
        assert opening is not None
        try:
            session = await gate.enter(Introduction(credentials, upgrade.certificate, upgrade.address, DOOR))
            self._entrance = gate.entrances.came(session.principal, upgrade.address, self._shown_out)
        except Exception as error:
            self._keep_out(error, call)
            return
        finally:
            self._entering = None
        framing = self._framing or self._switch(opening)
        framing.allow(self._all.settings.body_bytes_max)
        name = f"websocket:{self._number}"
        self._conversation = Conversation(self._all, name, session, opening.format, self._intake, self.say)
        if self._writing_paused:
            self._conversation.pause()
        self._conversation.greet(call)
        self.look_whether_to_read()

    def _keep_out(self, error: Exception, call: int) -> None:
        if not isinstance(error, SealaneError):
            self._all.gate.supervisor.crashed("websocket entrance", error)
        self._all.gate.refused(error)
        if self._framing is None:
            self._turn_away(problem_with(error))
            return
        document = problem_document(error)
        said = {"type": "error", "problem": document}
        self.say({**said, "call": call} if call else said)
        self.close(REFUSED if isinstance(error, SealaneError) else FAILED, document["detail"])

    def _turn_away(self, problem: Problem) -> None:
        """The request is refused, with this answer."""
        self.transport.write(refusal(problem))
        self._close_transport()

    # --- the transport ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        self._pinged = False
        if self._framing is None:
            self.transport.abort()  # Nothing may be said before the answer to the request.
            return
        self._unread += data
        self._take_in()

    def eof_received(self) -> bool:
        return False  # The transport sends what waits, and closes.

    def pause_writing(self) -> None:
        """The client reads too slowly: its consumers get no more, until what waits has become less."""
        self._writing_paused = True
        self._unsent.set(self._all.settings.send_seconds_max)
        if self._conversation is not None:
            self._conversation.pause()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._unsent.clear()
        self._intake.let_go("unsent")
        if self._conversation is not None:
            self._conversation.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._unsent.clear()
        self._unread.clear()
        self._messages.clear()
        if self._entering is not None:
            self._entering.cancel()
        if self._entrance is not None:
            self._all.gate.entrances.left(self._entrance)
        self._intake.close()
        if self._conversation is not None:
            self._conversation.end()
        self._all.went(self)
        self._upgrade.departed()

    def shutdown(self) -> None:
        """The server stops. While it drains, `Conversations` sees to it."""
        if not self._all.draining:
            self.close(GOING_AWAY, "the node stops")

    # --- hearing ------------------------------------------------------------------------------------------------------

    @property
    def _may_read(self) -> bool:
        if self._closing_since is not None:
            return not self._lost  # What may still come is the client's own last word.
        return not self._lost and self._entering is None and not self._intake.paused

    def look_whether_to_read(self) -> None:
        """Something that spoke against it has come or gone."""
        if self._lost or self.transport.is_closing():
            return
        if self._may_read:
            self.transport.resume_reading()
            self._loop.call_soon(self._take_in)
        else:
            self.transport.pause_reading()

    def _take_in(self) -> None:
        """Act upon what was received, message by message, for as long as nothing speaks against it."""
        while self._may_read and self._framing is not None and (self._messages or self._unread):
            if self._messages:
                self._listen(self._messages.popleft())
                continue
            piece = bytes(self._unread[:PIECE_BYTES])
            del self._unread[:PIECE_BYTES]
            messages, anything = self._framing.receive(piece)
            self._messages.extend(messages)
            if anything and not self._framing.is_amid_message:
                self._partial_since = None
            elif self._partial_since is None:
                self._partial_since = self._heard
            if not self._framing.is_open:
                # The client's last word came with these. They were said before it, and nobody answers them any more.
                while self._messages:
                    self._act_upon(self._messages.popleft())
            self._send()

    def _listen(self, message: Whole) -> None:
        if self._speaking:
            self._act_upon(message)

    def _act_upon(self, message: Whole) -> None:
        if self._opening is None:
            return
        format = self._opening.format
        if message.is_text != format.is_text:
            self.close(WRONG_TYPE, f"{format.subprotocol} is spoken in {'text' if format.is_text else 'binary'} frames")
            return
        try:
            if self._conversation is not None:
                self._conversation.hear(message.data)
            else:
                self._hear_hello(format.read(message.data))
        except Unreadable:
            self.close(NOT_READABLE, f"a message that is not as {format.subprotocol} has it")
        except InvalidMessage as error:
            self._keep_out(Unauthenticated(f"the first message is no hello as it should be: {error}"), 0)
        except Exception as error:
            self._all.gate.supervisor.crashed("websocket connection", error)
            self.close(FAILED, "the node failed at what it heard; its log tells more")

    def _hear_hello(self, request: object) -> None:
        if isinstance(request, Hello):
            self._begin_entering(credentials_of(f"Bearer {request.token}"), request.call)
        else:
            problem = "no credential was shown: show one in the Authorization header, or begin with a hello and a token"
            self._keep_out(Unauthenticated(problem), 0)

    # --- speaking -----------------------------------------------------------------------------------------------------

    @property
    def _speaking(self) -> bool:
        return self._framing is not None and self._framing.is_open and not self._lost

    def say(self, document: dict[str, Any]) -> None:
        """Tell the client, if it is still there."""
        if self._speaking and self._framing is not None and self._opening is not None:
            format = self._opening.format
            self._framing.say(format.encode(document), is_text=format.is_text)
            self._send()

    def _send(self) -> None:
        assert self._framing is not None
        data, is_last = self._framing.to_send()
        if data:
            self.transport.write(data)
        if not self._framing.is_open and self._conversation is not None:
            self._conversation.end()
        if is_last:
            self._close_transport()
        elif self._writing_paused and self.transport.get_write_buffer_size() > 2 * UNSENT_BYTES:
            # Consumers are paused already: this client asks, and does not listen to the answers.
            self._intake.hold("unsent")

    def close(self, code: int, reason: str) -> None:
        """The last word, unless there was one. The connection ends when the client repeats it, or is cut off."""
        if self._lost:
            return
        self._closing_since = self._closing_since or self._loop.time()
        if self._framing is None:
            self.transport.abort()
        else:
            self._framing.close(code, reason)
            self._send()
            self.look_whether_to_read()

    def _close_transport(self) -> None:
        self._closing_since = self._closing_since or self._loop.time()
        self.transport.close()

    def _shown_out(self, why: Unauthenticated) -> None:
        """Its credential is over: it hears nothing more, and is cut off if it does not go."""
        self.close(REFUSED, str(why))
        self._loop.call_later(SHOWN_OUT_SECONDS_MAX, self.transport.abort)

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something that was begun is not done yet."""
        return self._entering is not None or (self._conversation is not None and self._conversation.busy)

    def drain(self) -> None:
        if self._conversation is not None:
            self._conversation.drain()

    def tick(self, now: float, *, deaf: bool) -> None:
        """About once a second. `deaf`: the node itself has not come to reading."""
        if self._closing_since is not None:
            if now - self._closing_since > FAREWELL_SECONDS_MAX:
                self.transport.abort()
        elif self._framing is None:
            return  # Its request is answered as soon as it is known who it is.
        elif deaf or not self._may_read:
            self._heard = now  # It may have said something that nobody has read.
        elif self._conversation is None and now - self._came > HELLO_SECONDS_MAX:
            self._keep_out(Unauthenticated(f"no credential was shown within {HELLO_SECONDS_MAX:g} s"), 0)
        elif self._partial_since is not None and now - self._partial_since > self._all.settings.receive_seconds_max:
            self.close(REFUSED, "a message took longer than doors.http.receive_seconds_max")
        elif now - self._heard > PING_SECONDS + PONG_SECONDS_MAX:
            self.close(FAILED, "nothing was heard for too long")
            self.transport.abort()  # Nobody is there to take the last words.
        elif now - self._heard > PING_SECONDS and not self._pinged:
            self._pinged = True
            self._framing.ping()
            self._send()


class _Valve(asyncio.ReadTransport):
    """What an intake closes and opens: what was received is held back too, not only what is still on its way."""

    def __init__(self, connection: WebSocketConnection) -> None:
        super().__init__()
        self._connection = connection

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def pause_reading(self) -> None:
        self._connection.transport.pause_reading()

    def resume_reading(self) -> None:
        self._connection.look_whether_to_read()
