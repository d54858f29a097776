"""One connection: its first frame says what it is, a producer or a consumer, and it is that until its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.doors.frames.consumer import FramesConsumer
from sealane.doors.frames.framing import first_frame, framed
from sealane.doors.frames.producer import FramesProducer
from sealane.doors.nameless.connection import NamelessConnection
from sealane.errors import InvalidMessage, SealaneError

if TYPE_CHECKING:
    from sealane.doors.frames.door import FramesDoor

PRODUCER = b"PRODUCER"
CONSUMER = b"CONSUMER"
ROLE_BYTES_MAX = 64
"""The first frame: far more than either word has, and far less than anything else would be."""
ROLE_SECONDS_MAX = 10.0
"""How long a connection may take to say what it is."""
REFUSAL = "ERROR: "
"""How a frame begins by which the node says no; the connection ends behind it."""


def refusal_frame(text: str) -> bytes:
    return framed([(REFUSAL + text).encode()])


class FramesConnection(NamelessConnection["FramesDoor"]):
    """Made by the door for each that comes in."""

    def __init__(self, door: FramesDoor) -> None:
        super().__init__(door)
        self._first = b""
        """What has come of the first frame."""
        self._role: FramesProducer | FramesConsumer | None = None
        self._role_due = self.loop.time() + ROLE_SECONDS_MAX

    # --- hearing ------------------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        try:
            if self._role is None:
                data = self._hear_first(self._first + data)
            if self._role is not None:
                self._role.hear(data)
                self.partial = self._role.partial
        except SealaneError as error:
            self.turn_away(error)
        except Exception as error:
            self.crashed("frames connection", error)

    def _hear_first(self, data: bytes) -> bytes:
        """What follows the first frame, once that has come. Raises what speaks against what it says."""
        try:
            found = first_frame(data, ROLE_BYTES_MAX)
        except ValueError as error:
            raise _no_role(str(error)) from None
        if found is None:
            self._first, self.partial = data, bool(data)
            return b""
        said, rest = found
        self._first, self.partial = b"", False
        self.came_whole()
        assert self.session is not None, "nothing is heard before it is known who it is"
        if said == PRODUCER:
            self._role = FramesProducer(self, self.session)
        elif said == CONSUMER:
            self._role = self.door.new_consumer(self, self.session)
        else:
            raise _no_role(f"it is {said[:16]!r}")
        return rest

    def eof_received(self) -> bool:
        """A producer may say that it has said all, and wait: its connection is closed when all of it is stored. A
        consumer that says so has gone.
        """
        super().eof_received()
        if not isinstance(self._role, FramesProducer) or self._leaving:
            return False
        self._role.said_all()
        return True

    # --- speaking -----------------------------------------------------------------------------------------------------

    def tell(self, error: SealaneError) -> None:
        text = str(error) if self._role is None else f"{error}{self._role.so_far()}"
        self.transport.write(refusal_frame(text))

    def crashed(self, task: str, error: Exception) -> None:
        """Something that nobody expected: it is told without a word of what it was, and the connection ends."""
        self.door.gate.supervisor.crashed(task, error)
        self.turn_away(SealaneError("the node failed unexpectedly; its log tells more"))

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.door.settings.mode == "broadcast" and not self._leaving:
            # Nobody waits for what it has not taken, and it would miss what comes until it is back.
            self._unsent.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        if isinstance(self._role, FramesConsumer):
            self._role.resume()

    # --- its end ------------------------------------------------------------------------------------------------------

    def ended(self) -> None:
        if self._role is not None:
            self._role.end()

    def drain(self) -> None:
        self.intake.hold("requests")
        if self._role is not None:
            self._role.drain()

    @property
    def busy(self) -> bool:
        return self._role is not None and self._role.busy

    def tick(self, now: float, *, deaf: bool) -> None:
        super().tick(now, deaf=deaf)
        if self._role is not None or self._leaving:
            return
        if deaf or self.session is None:
            self._role_due = now + ROLE_SECONDS_MAX
        elif now > self._role_due:
            self.turn_away(_no_role(f"it has not come within {ROLE_SECONDS_MAX:g} s"))


def _no_role(problem: str) -> InvalidMessage:
    words = f"{PRODUCER.decode()} or {CONSUMER.decode()}"
    return InvalidMessage("first frame", f"must be {words}, each after its length in four bytes: {problem}")
