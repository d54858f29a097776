"""Frames as whole messages, without I/O: bytes in and out. What a frame is, `websockets` knows."""

from __future__ import annotations

import logging
from typing import NamedTuple, cast

from websockets.frames import Frame, Opcode
from websockets.protocol import SEND_EOF, Protocol, Side, State
from websockets.typing import BytesLike

FRAGMENTS_MAX = 1_024
"""Frames of one message: empty ones count nothing against its size, and each takes memory."""
REASON_BYTES_MAX = 123
"""Of the reason in a close frame: what its format has room for."""
NOT_READABLE = 1007
TOO_MUCH = 1009

# What strangers send is not to fill the log; of what fails here it tells.
_log = logging.getLogger("sealane.doors.http.websocket.framing")
_log.setLevel(logging.ERROR)


class Whole(NamedTuple):
    """A message, all of its frames together."""

    is_text: bool
    data: bytes


class Framing:
    """The node's side of one WebSocket. Nothing is compressed: a few bytes could unpack to any size."""

    def __init__(self, bytes_max: int) -> None:
        """A message may have so many bytes; one with more closes the connection with 1009."""
        self._protocol = Protocol(Side.SERVER, state=State.OPEN, max_size=bytes_max, logger=_log)
        self._fragments: list[BytesLike] = []
        self._is_text = False
        self._gave_up = False
        """Whether the node has had its last word: whatever comes is not listened to."""

    def allow(self, bytes_max: int) -> None:
        """Messages may be of another size from now on."""
        self._protocol.max_message_size = bytes_max

    @property
    def is_open(self) -> bool:
        """Whether neither side has said that it closes."""
        return self._protocol.state is State.OPEN

    @property
    def is_amid_message(self) -> bool:
        """Whether some frames of a message have come, and others have not."""
        return bool(self._fragments)

    def receive(self, data: bytes) -> tuple[list[Whole], bool]:
        """The messages that are whole now, and whether there was anything whole at all."""
        self._protocol.receive_data(data)
        events = cast("list[Frame]", self._protocol.events_received())
        return [message for event in events if (message := self._assembled(event)) is not None], bool(events)

    def _assembled(self, frame: Frame) -> Whole | None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text = frame.opcode == Opcode.TEXT
            self._fragments = [frame.data]
        elif frame.opcode == Opcode.CONT:
            self._fragments.append(frame.data)
        else:
            return None  # Pings and closings have been answered already.
        if not frame.fin:
            if len(self._fragments) >= FRAGMENTS_MAX:
                self.close(TOO_MUCH, f"a message of more than {FRAGMENTS_MAX:,} frames")
            return None
        data = b"".join(self._fragments)
        self._fragments = []
        if self._is_text and not _is_utf8(data):
            self.close(NOT_READABLE, "text that is not UTF-8")
        return None if self._gave_up else Whole(self._is_text, data)

    def say(self, data: bytes, *, is_text: bool) -> None:
        if is_text:
            self._protocol.send_text(data)
        else:
            self._protocol.send_binary(data)

    def ping(self) -> None:
        self._protocol.send_ping(b"")

    def close(self, code: int, reason: str) -> None:
        """The last word, unless there was one."""
        self._gave_up = True
        if self.is_open:
            self._protocol.send_close(code, reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore"))

    def to_send(self) -> tuple[bytes, bool]:
        """What is to be sent, and whether the connection is to be closed behind it."""
        pieces = self._protocol.data_to_send()
        return b"".join(pieces), SEND_EOF in pieces


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
