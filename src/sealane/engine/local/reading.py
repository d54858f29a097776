"""Files that are read: numbered, opened when first needed, closed when others need the descriptor more."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from sealane.engine.contract import Packed, PartitionKey, Stored
from sealane.engine.local import record
from sealane.engine.local.compacted import open_journal, open_messages, open_packed
from sealane.engine.local.files import File, Files
from sealane.engine.local.index import Row
from sealane.errors import CorruptData
from sealane.security.at_rest.sealing import PREFIX_BYTES, Sealer

_ALIGNMENT = 64
"""Where Arrow likes its buffers to begin, and where its pool puts them."""


class Sources:
    """The files that index rows point into.

    A file that is pinned stays open, and on disk, until it is unpinned: compaction may replace it meanwhile. Pins,
    additions and retirements belong to the loop's thread; `file` may be called from any.
    """

    def __init__(self, files: Files, open_max: int) -> None:
        self._files = files
        self._open_max = open_max
        self._names: dict[int, str] = {}
        self._open: OrderedDict[int, File] = OrderedDict()
        self._pins: Counter[int] = Counter()
        self._kept: Counter[str] = Counter()
        self._keeping_all = False
        self._retired: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, name: str) -> None:
        self._names[number] = name

    def name(self, number: int) -> str:
        return self._names[number]

    def file(self, number: int) -> File:
        with self._lock:
            file = self._open.get(number)
            if file is None:
                file = self._open[number] = self._files.open(self._names[number])
            self._open.move_to_end(number)
            if len(self._open) > self._open_max:
                self._close_some()
            return file

    def pin(self, rows: Sequence[Row]) -> None:
        with self._lock:
            self._pins.update(row.file for row in rows)

    def unpin(self, rows: Sequence[Row]) -> None:
        with self._lock:
            self._pins.subtract(row.file for row in rows)
            self._pins = +self._pins
        self._finish_retired()

    def keep_all(self) -> None:
        """From here on no file is removed, until `let_go_of_all`: for as long as it takes to say which ones to keep."""
        self._keeping_all = True

    def let_go_of_all(self) -> None:
        self._keeping_all = False
        self._finish_retired()

    def keep(self, names: Iterable[str]) -> None:
        """Leave these files on disk, whatever replaces them, until `let_go`."""
        self._kept.update(names)

    def let_go(self, names: Iterable[str]) -> None:
        self._kept.subtract(names)
        self._kept = +self._kept
        self._finish_retired()

    def retire(self, number: int, then: Callable[[], None]) -> None:
        """The file is of no more use: close it and call `then` (which removes it) once nobody reads it."""
        self._retired[number] = then
        if not self._in_use(number):
            self._finish(number)

    @property
    def retiring(self) -> bool:
        """Whether there are files of no more use that someone still reads."""
        return bool(self._retired)

    def close(self) -> None:
        with self._lock:
            for file in self._open.values():
                file.close()
            self._open.clear()

    def _in_use(self, number: int) -> bool:
        return self._keeping_all or number in self._pins or self._names.get(number) in self._kept

    def _finish_retired(self) -> None:
        for number in [number for number in self._retired if not self._in_use(number)]:
            self._finish(number)

    def _finish(self, number: int) -> None:
        with self._lock:
            file = self._open.pop(number, None)
            if file is not None:
                file.close()
            self._names.pop(number, None)
        self._retired.pop(number)()

    def _close_some(self) -> None:
        for number in list(self._open):
            if len(self._open) <= self._open_max:
                return
            if number not in self._pins:
                self._open.pop(number).close()


def read_messages(sources: Sources, sealer: Sealer, partition: PartitionKey, row: Row) -> list[Stored]:
    """The batches of one row. `CorruptData` when they fail a check."""
    return open_messages(
        _checked(sources, row), partition=partition, base=row.base, count=row.count, flags=row.flags, sealer=sealer
    )


def read_packed(sources: Sources, sealer: Sealer, partition: PartitionKey, row: Row) -> list[Stored | Packed]:
    """The same, and what is stored compressed stays so."""
    return open_packed(
        _checked(sources, row), partition=partition, base=row.base, count=row.count, flags=row.flags, sealer=sealer
    )


def read_journal(sources: Sources, sealer: Sealer, partition: PartitionKey, row: Row) -> list[tuple[int, bytes]]:
    """The journal entries of one row, each with its number. `CorruptData` when they fail a check."""
    return open_journal(
        _checked(sources, row), partition=partition, base=row.base, count=row.count, flags=row.flags, sealer=sealer
    )


def _checked(sources: Sources, row: Row) -> memoryview:
    """What is stored, in memory of its own: whoever opens it may do so in place.

    Arrow's pool gives out again what it has had before; memory that is new to the process takes longer to get than to
    fill. What is sealed lies so that what was sealed begins at a multiple of 64.
    """
    lead = -PREFIX_BYTES % _ALIGNMENT if row.flags & record.SEALED else 0
    raw = memoryview(pa.allocate_buffer(lead + row.length)).cast("B")[lead:]
    if sources.file(row.file).read_into(row.position, raw) != row.length or record.checksum(raw) != row.checksum:
        raise CorruptData("the checksum does not match")
    return raw
