"""Received messages as JSON lines, one a message: `received.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sealane.cipher.received.entry import Entry, id_in
from sealane.cipher.received.received_file import ReceivedFile
from sealane.errors import CorruptData
from sealane.log import get_log
from sealane.whole_files import PRIVATE, sync

_BEGINNING = b'{"message_id":'
"""Of every line that is written here."""

log = get_log("sealane.cipher")


class JsonLines(ReceivedFile):
    """It is only ever appended to, so it may grow as large as the disk."""

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, PRIVATE)
        try:
            self._read()
            os.fsync(self._descriptor)
            sync(self.path.parent)  # The file's name is durable too.
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> None:
        self._size = 0
        with open(self._descriptor, "rb", closefd=False) as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and id_in(line) is None:
                    self._cut(line, number)
                    return
                message_id = id_in(line) if line.strip() else ""
                if message_id is None:
                    raise self._corrupt(number)
                if message_id:
                    self.ids.add([message_id])
                self._size += len(line)
                if not line.endswith(b"\n"):
                    self._append(b"\n")

    def _cut(self, torn: bytes, number: int) -> None:
        """A line that was being written when the process or the machine ended: nobody has acknowledged it."""
        begun = torn.rstrip(b"\0")  # Some file systems leave these where data did not reach the disk.
        if not (begun.startswith(_BEGINNING) or _BEGINNING.startswith(begun)):
            raise self._corrupt(number)
        log.warning("a line that was written in part is cut off", file=str(self.path), line=number)
        os.ftruncate(self._descriptor, self._size)

    def _corrupt(self, number: int) -> CorruptData:
        problem = f"line {number:,} is no entry of received messages; move the file away, or give another one"
        return CorruptData(f"{str(self.path)!r}: {problem}")

    def _write(self, entries: Sequence[Entry]) -> None:
        self._append(b"".join(entry.written() + b"\n" for entry in entries))

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError:
            # A full disk takes a line in part, and what could not be synced may be gone tomorrow: neither counts.
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def _close(self) -> None:
        os.close(self._descriptor)
