"""Received messages as one JSON array, an entry a line: `received_messages.json`."""

from __future__ import annotations

import stat
from collections.abc import Sequence

import msgspec

from sealane.cipher.errors import OutputFull
from sealane.cipher.received.entry import Entry, id_in
from sealane.cipher.received.received_file import ReceivedFile
from sealane.errors import CorruptData
from sealane.whole_files import PRIVATE, replace_file

ARRAY_BYTES_MAX = 64 << 20
"""Of the file: it is in memory, and written as a whole with each delivery, so that it is never seen half written."""


class JsonArray(ReceivedFile):
    """Whoever reads it, at any moment, finds a valid array. It is for thousands of messages, not for millions."""

    def _open(self) -> None:
        self._entries: list[bytes] = []
        self._bytes = 0
        self._mode = PRIVATE
        self._clear_up()
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return
        self._check_size(found.st_size)
        self._mode = stat.S_IMODE(found.st_mode)
        self._read(self.path.read_bytes())

    def _clear_up(self) -> None:
        """Remove what was being written when an earlier receiver was killed: nobody else writes here now."""
        for path in self.path.parent.iterdir():
            if path.name.startswith(f".{self.path.name}.") and path.suffix == ".draft":
                path.unlink(missing_ok=True)

    def _read(self, text: bytes) -> None:
        if not text.strip():
            return
        try:
            # Each entry is kept as it is, also one with fields that others have added.
            found = msgspec.json.decode(text, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            problem = "is not a JSON array of received messages; move it away, or give another file"
            raise CorruptData(f"{str(self.path)!r} {problem}") from None
        for number, raw in enumerate(found, 1):
            message_id = id_in(raw)
            if message_id is None:
                problem = f"entry {number:,} has no message_id; move it away, or give another file"
                raise CorruptData(f"{str(self.path)!r} is not a list of received messages: {problem}")
            self._entries.append(bytes(raw))
            self.ids.add([message_id])
        self._bytes = sum(map(len, self._entries))

    def _write(self, entries: Sequence[Entry]) -> None:
        added = [entry.written() for entry in entries]
        count = self._bytes + sum(map(len, added))
        self._check_size(count)
        written = [*self._entries, *added]
        replace_file(self.path, b"[\n" + b",\n".join(written) + b"\n]\n", self._mode)
        self._entries, self._bytes = written, count

    def _check_size(self, count: int) -> None:
        if count > ARRAY_BYTES_MAX:
            raise OutputFull(str(self.path), ARRAY_BYTES_MAX)
