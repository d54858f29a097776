"""One native connection on the node's side: bytes in, commands through its session, answers and deliveries out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from sealane.doors.intake import Intake
from sealane.doors.native.arrival import certificate_of, check_version, welcome
from sealane.doors.native.attached import AttachedConsumers
from sealane.doors.native.commands import COMMANDS
from sealane.doors.native.consumers import NativeConsumer
from sealane.doors.native.requests import Requests
from sealane.doors.native.signatures import signatures_of
from sealane.errors import (
    BadSignature,
    SealaneError,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
)
from sealane.log import get_log
from sealane.message.codec import FRAMING_BYTES_MAX
from sealane.node.entrances import Entrance
from sealane.node.session import Session
from sealane.security.introductions import Introduction
from sealane.sockets import prepare, write_pieces
from sealane.wire.connection import DRAINING, Connection, State
from sealane.wire.errors import ProtocolError
from sealane.wire.faults import INTERNAL, fault_of
from sealane.wire.frames import ANSWER_HEADER_BYTES_MAX, Buffer
from sealane.wire.messages import (
    Attach,
    Credit,
    Goodbye,
    Hello,
    Leave,
    News,
    Ping,
    Pong,
    Progress,
    Publish,
    Refused,
    Release,
    Reply,
    Request,
    Settle,
)
from sealane.wire.outbox import Outbox
from sealane.wire.signing import Verifier

if TYPE_CHECKING:
    from sealane.doors.native.door import NativeDoor

log = get_log("sealane.doors.native")

FAREWELL_SECONDS_MAX = 10.0
"""A connection that is closed waits so long for its peer to take the last words, and is cut off then."""
SHOWN_OUT_SECONDS_MAX = 2.0
"""The same for one whose credential is over: the node looks every second, and in five all such are gone."""


class NativeConnection(asyncio.BufferedProtocol):
    """Made by the door for each that comes in. Everything happens on the event loop."""

    __slots__ = (
        "_closing_since",
        "_consumers",
        "_door",
        "_entering",
        "_entrance",
        "_intake",
        "_number",
        "_outbox",
        "_requests",
        "_room",
        "_session",
        "_transport",
        "_verifier",
        "_wire",
        "_writing_paused",
        "quiet_since",
    )

    def __init__(self, door: NativeDoor, number: int) -> None:
        self._door = door
        self._number = number
        self._wire = Connection("node", door.scratch, door.clock())
        self._intake = Intake(door.settings.in_flight_bytes_max, door.budget)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._verifier: Verifier | None = None
        """There if what this client publishes must be signed."""
        self._consumers = AttachedConsumers(door, self)
        self._requests = Requests(self, self._intake)
        self._outbox = Outbox(door.call_soon, self._send)
        self._writing_paused = False
        self._room: asyncio.Future[None] | None = None
        """Done when writing is no longer paused, or the connection gone; there if someone waits for it."""
        self._entering: asyncio.Task[None] | None = None
        self._entrance: Entrance | None = None
        self._closing_since: float | None = None
        self.quiet_since: float | None = None
        """While draining: since when it has had nothing to do."""

    # --- the transport ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        prepare(transport)
        self._transport.set_write_buffer_limits(high=self._door.settings.unsent_bytes_max)
        self._intake.open(self._transport)
        self._door.came(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._wire.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._door.received_bytes += nbytes
        try:
            for message, body in self._wire.received(nbytes, self._door.clock()):
                self._hear(message, body)
        except ProtocolError as error:
            self.part(error)
        except Exception as error:
            self._door.supervisor.crashed("native connection", error)
            self.say_goodbye(INTERNAL, "the node failed unexpectedly at what it heard; its log tells more")

    def eof_received(self) -> bool:
        return False  # The transport sends what waits, and closes.

    def pause_writing(self) -> None:
        """The client reads too slowly: its consumers get no more, until what waits has become less."""
        self._writing_paused = True
        self._consumers.pause()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._make_room()
        self._intake.let_go("unsent")
        self._consumers.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._wire.state = State.CLOSED
        if self._entering is not None:
            self._entering.cancel()
        if self._entrance is not None:
            self._door.gate.entrances.left(self._entrance)
        self._outbox.discard()
        self._make_room()
        self._intake.close()
        self._requests.cut_short()
        self._consumers.lose()
        self._door.went(self)

    # --- speaking -----------------------------------------------------------------------------------------------------

    def _send(self, pieces: list[Buffer], length: int) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        write_pieces(transport, pieces)
        self._door.sent_bytes += length
        if self._writing_paused and transport.get_write_buffer_size() > 2 * self._door.settings.unsent_bytes_max:
            # Consumers are paused already: this client asks, and does not listen to the answers.
            self._intake.hold("unsent")

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None

    async def room_to_write(self) -> None:
        while self._writing_paused and self._transport is not None:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._room])

    @property
    def speaking(self) -> bool:
        """Whether the peer can be told something."""
        state = self._wire.state
        return self._transport is not None and (state is State.OPEN or state is State.DRAINING)

    @property
    def draining(self) -> bool:
        return self._wire.state is State.DRAINING

    def reply(self, request: Request, reply: Reply, body: Sequence[Buffer] = ()) -> None:
        """Answer a request, if its answer is waited for."""
        if not request.call or not self.speaking:
            return
        pieces = self._wire.say(reply, body, now=self._door.clock())
        if len(pieces[0]) > ANSWER_HEADER_BYTES_MAX:
            problem = (
                f"{type(request).__name__} is done, but its answer of {len(pieces[0]):,} bytes is too long to send"
            )
            pieces = self._wire.say(Refused(request.call, *fault_of(Unavailable(problem))), now=self._door.clock())
        self._outbox.write(pieces)

    def refuse(self, request: Request, error: BaseException) -> None:
        if not isinstance(error, SealaneError):
            self._door.supervisor.crashed("native request", error, request=type(request).__name__)
        self._door.refused(error)
        self.reply(request, Refused(request.call, *fault_of(error)))

    def _tell(self, news: News, body: Sequence[Buffer]) -> None:
        if self.speaking:
            self._outbox.write(self._wire.say(news, body, now=self._door.clock()))

    def progress(self, call: int, done: int, total: int = 0) -> None:
        if call:
            self._tell(Progress(call, done, total), ())

    def part(self, error: ProtocolError) -> None:
        """Tell the peer what it did wrong, and close."""
        # Strangers could fill the log with this.
        say = log.info if self._session is not None else log.debug
        say("a connection is cut off", peer=self.peer, code=error.code, problem=error.problem)
        self.say_goodbye(error.code, error.problem)

    def say_goodbye(self, code: str, text: str, fields: dict[str, Any] | None = None) -> None:
        """The last word, unless there was one; then the transport closes once it is sent."""
        if self._transport is None:
            return
        if self._wire.state is not State.CLOSED:
            self._outbox.write(self._wire.say(Goodbye(code, text, fields or {}), now=self._door.clock()))
        self._outbox.flush()
        self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def peer(self) -> str:
        """Where it came from, for the log."""
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{address[0]}:{address[1]}" if address else "gone"

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float, *, deaf: bool) -> None:
        """About once a second. `deaf`: the node itself has not come to reading."""
        if self._transport is None:
            return
        if self._transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > FAREWELL_SECONDS_MAX:
                self.abort()
            return
        try:
            if due := self._wire.tick(now, deaf=deaf or self._intake.was_paused):
                self._outbox.write(due)
        except ProtocolError as error:
            self.part(error)
            if error.code == "silent":
                self.abort()  # Nobody is there to take what waits.
        self._intake.was_paused = self._intake.paused

    def drain(self) -> None:
        """The node stops: take no more, and finish what was begun."""
        if self._wire.state is State.OPEN:
            self._consumers.leave()
            text = "the node stops: finish what you have begun, and come back elsewhere or later"
            self._outbox.write(self._wire.say(Goodbye(DRAINING, text), now=self._door.clock()))
        elif self._wire.state is not State.DRAINING:
            self.say_goodbye("closing", "the node stops")

    @property
    def busy(self) -> bool:
        """Whether something that was begun is not done yet."""
        return bool(self._intake.in_flight_bytes) or self._consumers.busy

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self, message: Any, body: memoryview) -> None:
        if self._verifier is not None:
            try:
                self._verifier.verify(message, body)
            except BadSignature as error:
                self._distrust(message, error)
                return
        kind = type(message)
        if kind is Publish:
            self._requests.publish(message, body)
        elif kind in COMMANDS:
            self._requests.take(message, body)
        else:
            _NOTES[kind](self, message)

    def _distrust(self, request: Request, error: BadSignature) -> None:
        """Someone else may be speaking: what came so far is done, and nothing more is heard."""
        log.warning("a connection is cut off", peer=self.peer, code="bad-signature", problem=error.problem)
        _ = self.session.note("signature", details={"problem": error.problem}, outcome="refused")
        self.refuse(request, error)
        code, text, _ = fault_of(error)
        self.say_goodbye(code, text)

    def _hello(self, hello: Hello) -> None:
        check_version(hello)
        self._entering = asyncio.get_running_loop().create_task(self._enter(hello), name="native handshake")

    async def _enter(self, hello: Hello) -> None:
        """Tell who it is, which may take a while; until then nothing else is heard of it."""
        door = self._door
        try:
            certificate = certificate_of(self._transport)
            session = await door.gate.enter(Introduction(hello.credentials, certificate, self.host, door.name))
            signatures = signatures_of(session, hello.credentials)
        except SealaneError as error:
            self.turn_away(error)
            return
        except Exception as error:
            door.supervisor.crashed("native handshake", error)
            self.say_goodbye(INTERNAL, "the node failed unexpectedly at the handshake; its log tells more")
            return
        finally:
            self._entering = None
        if self._transport is None or self._wire.state is not State.GREETED:
            return  # It has left, or was too slow.
        try:
            self._entrance = door.gate.entrances.came(session.principal, self.host, self._shown_out)
        except TooManyConnections as error:
            self.turn_away(error)
            return
        self._session = session
        self._verifier = signatures.verifier
        log.debug("a client came in", peer=self.peer, software=hello.software[:100], principal=session.principal.name)
        self._outbox.write(self._wire.say(welcome(door, hello, session, signatures.nonce), now=door.clock()))

    def turn_away(self, error: SealaneError) -> None:
        """It may not come in, for this reason."""
        self._door.refused(error)
        code, text, fields = fault_of(error)
        self.say_goodbye(code, text, fields)

    def _shown_out(self, why: Unauthenticated) -> None:
        """Its credential is over: it hears nothing more, and is cut off if it does not go."""
        code, text, _ = fault_of(why)
        self.say_goodbye(code, text)
        asyncio.get_running_loop().call_later(SHOWN_OUT_SECONDS_MAX, self.abort)

    @property
    def host(self) -> str:
        """The address it comes from; empty once it is gone."""
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(address[0]) if address else ""

    def _ping(self, ping: Ping) -> None:
        if self.speaking:
            self._outbox.write(self._wire.pong(self._door.clock()))

    def _pong(self, pong: Pong) -> None:
        """Heard, which is all it is for."""

    def _goodbye(self, goodbye: Goodbye) -> None:
        if self._wire.state is State.CLOSED and self._transport is not None:
            self._outbox.flush()
            self._transport.close()

    # --- consumers ----------------------------------------------------------------------------------------------------

    def add_consumer(self, request: Attach) -> NativeConsumer:
        """It is there from the moment in which `Attach` is heard, so that what is said next finds it."""
        return self._consumers.add(request, f"native:{self._number}:{request.consumer}", self._tell)

    def _of_a_consumer(self, note: Credit | Settle | Release | Leave) -> None:
        self._consumers.hear(note)

    def tidy(self) -> None:
        """Forget consumers that have left and whose last lease has ended."""
        self._consumers.tidy()

    # --- for commands -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        assert self._session is not None, "nothing is heard before the handshake is done"
        return self._session

    @property
    def body_bytes_max(self) -> int:
        return self.session.limits.batch_bytes_max + FRAMING_BYTES_MAX

    def consumer(self, number: int) -> NativeConsumer:
        return self._consumers.find(number)

    def consumer_by_identity(self, identity: str) -> NativeConsumer:
        return self._door.find_consumer(self, identity)

    def forget_consumer(self, consumer: NativeConsumer) -> None:
        self._consumers.forget(consumer)


_NOTES: dict[type, Callable[[NativeConnection, Any], None]] = {
    Hello: NativeConnection._hello,
    Ping: NativeConnection._ping,
    Pong: NativeConnection._pong,
    Goodbye: NativeConnection._goodbye,
    Credit: NativeConnection._of_a_consumer,
    Settle: NativeConnection._of_a_consumer,
    Release: NativeConnection._of_a_consumer,
    Leave: NativeConnection._of_a_consumer,
}
"""What is heard and not answered, or at once."""
