"""One connection of the cipher door: bytes in, lines out, and the bounds that hold for both."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sealane.doors.cipher.conversation import Conversation
from sealane.doors.intake import REQUEST_BYTES
from sealane.doors.nameless.connection import NamelessConnection
from sealane.errors import InvalidArgument, SealaneError, Unavailable
from sealane.wire.cipher import replies
from sealane.wire.cipher.commands import Ack, Command, read_command
from sealane.wire.cipher.lines import Line, LineReader, Skipped
from sealane.wire.cipher.strangers import foreign_start, is_http

if TYPE_CHECKING:
    from sealane.doors.cipher.door import CipherDoor

DRAIN_SECONDS_MAX = 2.0
"""When the node stops, clients have so long to acknowledge what they were handed."""


class CipherConnection(NamelessConnection["CipherDoor"]):
    def __init__(self, door: CipherDoor, number: int) -> None:
        super().__init__(door)
        self.number = number
        """Of all connections of this door, for the names of its consumers."""
        self._lines = LineReader(door.settings.line_bytes_max)
        self._conversation: Conversation | None = None
        """There once it is known who it is."""
        self._is_new = True
        """Whether nothing was heard yet."""
        self._room: asyncio.Future[None] | None = None
        self._drains_until: float | None = None
        self._tidied = self.loop.time()

    def began(self) -> None:
        assert self.session is not None, "it is known who it is"
        self._conversation = Conversation(self, self.session)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        if self._is_new:
            self._is_new = False
            if (foreign := foreign_start(data)) is not None:
                self._turn_stranger_away(foreign)
                return
        lines = self._lines.receive(data)
        if lines:
            self.came_whole()
        for line in lines:
            if isinstance(line, bytes) and is_http(line):
                self._turn_stranger_away("HTTP")
                return
            self._hear_line(line)
        self.partial = self._lines.is_amid_line
        if not self.door.has_room_for(self, self._lines.kept_bytes):
            self._lines.give_up()
            self.door.has_room_for(self, 0)

    def _hear_line(self, line: Line) -> None:
        assert self._conversation is not None, "nothing is read before it is known who it is"
        cost = REQUEST_BYTES + (len(line) if isinstance(line, bytes) else 0)
        try:
            command = self._command_of(line)
        except SealaneError as error:
            self._conversation.take(error, REQUEST_BYTES)
            return
        if command is not None:
            self._conversation.take(command, cost)

    def _command_of(self, line: Line) -> Command | None:
        if line is Skipped.TOO_LONG:
            limit = self.door.settings.line_bytes_max
            problem = f"is longer than {limit:,} bytes, and was not read; send less at once, or have"
            raise InvalidArgument("line", f"{problem} doors.cipher.line_bytes_max raised")
        if isinstance(line, Skipped):
            raise Unavailable("too many long lines are on their way to this node, and this one was not read; try again")
        command = read_command(line)
        if command is not None and self.door.draining and not isinstance(command, Ack):
            raise Unavailable("the node is about to stop and did not do this; ask another one, or this one later")
        return command

    def _turn_stranger_away(self, language: str) -> None:
        problem = f"this door speaks CipherMQ's protocol, a command a line, and not {language}"
        self.turn_away(InvalidArgument("protocol", problem))

    def eof_received(self) -> bool:
        """Whoever has said all may still listen to the answers. Then they are let go."""
        if self._leaving or self._conversation is None:
            return False
        # A transport that was told to pause and to go on tells the end again.
        cut_off = self._lines.is_amid_line and not self.heard_all
        self.heard_all = True
        if cut_off:
            problem = "the last one has no end, a line feed, and was not carried out"
            self._conversation.take(InvalidArgument("line", problem), REQUEST_BYTES)
        return self._conversation.busy

    def answered_all(self) -> None:
        """All that was said so far is answered."""
        if self.heard_all and not self.lost:
            self.close()

    # --- speaking -----------------------------------------------------------------------------------------------------

    def say(self, lines: bytes) -> None:
        """Whole lines."""
        if lines and not self._leaving:
            self.transport.write(lines)

    def tell(self, error: SealaneError) -> None:
        self.say(replies.error(str(error)))

    async def room_to_write(self) -> None:
        """Wait for a client that does not read. It is cut off if it does not for too long."""
        while self.writing_paused and not self.lost:
            if self._room is None:
                self._room = self.loop.create_future()
            await asyncio.wait([self._room])

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._conversation is not None:
            self._conversation.consumers.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._make_room()
        if self._conversation is not None:
            self._conversation.consumers.resume()

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None

    # --- time and leaving ---------------------------------------------------------------------------------------------

    def tick(self, now: float, *, deaf: bool) -> None:
        super().tick(now, deaf=deaf)
        if self._conversation is not None and now - self._tidied > self.door.settings.lease_seconds:
            self._tidied = now
            self._conversation.consumers.tidy()

    def drain(self) -> None:
        self._drains_until = self.loop.time() + DRAIN_SECONDS_MAX
        if self._conversation is not None:
            self._conversation.consumers.leave()

    @property
    def busy(self) -> bool:
        if self._conversation is None:
            return False
        if self._drains_until is not None and self.loop.time() > self._drains_until:
            return self._conversation.busy
        return self._conversation.busy or self._conversation.consumers.holds_any

    def ended(self) -> None:
        self._make_room()
        self.door.has_room_for(self, 0)
        if self._conversation is not None:
            self._conversation.end()
