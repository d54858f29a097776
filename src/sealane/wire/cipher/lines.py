"""From bytes, however they come, to lines: several at once, in pieces, or longer than they may be."""

from __future__ import annotations

from enum import Enum

END = b"\n"


class Skipped(Enum):
    """A line that is not given, since it was not kept."""

    TOO_LONG = "too long"
    NO_ROOM = "no room"


Line = bytes | Skipped


class LineReader:
    """Keeps what has come of a line that has no end yet: at most `line_bytes_max`, copied once."""

    __slots__ = ("_begun", "_line_bytes_max", "_skipping")

    def __init__(self, line_bytes_max: int) -> None:
        self._line_bytes_max = line_bytes_max
        self._begun = bytearray()
        self._skipping: Skipped | None = None
        """Why nothing is kept until the line's end has come."""

    @property
    def is_amid_line(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._begun) or self._skipping is not None

    @property
    def kept_bytes(self) -> int:
        """What is kept of the line that has no end yet."""
        return len(self._begun)

    def receive(self, data: bytes) -> list[Line]:
        """The lines that end with these bytes, without their ends."""
        *ended, begun = data.split(END)
        lines = [self._whole(piece) for piece in ended]
        if begun:
            self._begin(begun)
        return lines

    def give_up(self) -> None:
        """Keep nothing of the line that has no end yet: it is `NO_ROOM` when that comes."""
        if self._begun:
            self._skip(Skipped.NO_ROOM)

    def _whole(self, piece: bytes) -> Line:
        if self._skipping is not None:
            why, self._skipping = self._skipping, None
            return why
        if len(self._begun) + len(piece) > self._line_bytes_max:
            self._begun = bytearray()
            return Skipped.TOO_LONG
        if not self._begun:
            return piece
        line = bytes(self._begun + piece)
        self._begun = bytearray()
        return line

    def _begin(self, piece: bytes) -> None:
        if self._skipping is not None:
            return
        if len(self._begun) + len(piece) > self._line_bytes_max:
            self._skip(Skipped.TOO_LONG)
        else:
            self._begun += piece

    def _skip(self, why: Skipped) -> None:
        self._begun = bytearray()
        self._skipping = why
