"""The log of a table: which steps have come in, and what each has changed. A record is the step's one moment."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sealane.errors import CorruptData
from sealane.pipeline.lake.tables import DELIVERIES, Lake, Table
from sealane.whole_files import PUBLIC, replace_file

RESTORE = (
    "restore the lake from a copy, tables and checkpoints together; or move it away: the next run takes in again all "
    "that the node still has"
)
"""The way out where nothing else in the lake tells what is lost."""


class Move(msgspec.Struct, frozen=True, array_like=True):
    """A staged file, and its place in the table; both relative to the table's directory."""

    staged: str
    place: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a table. Doing it again changes nothing more."""

    writer: str
    """Who does it: a query, or the compaction."""
    number: int
    """Of a query, the micro-batch."""
    adds: list[Move]
    removes: list[str] = []
    rows: int = 0


class TableLog:
    def __init__(self, lake: Lake, table: Table) -> None:
        self._root = lake.path(table)
        self._path = lake.log_path(table)
        self._table = table

    def find(self, writer: str, number: int) -> Step | None:
        """The step, if it has come in. Raises `CorruptData` for a record that cannot be read."""
        try:
            return self._read(self._record(writer, number))
        except FileNotFoundError:
            return None

    def last(self, writer: str) -> Step | None:
        """The newest step of a writer."""
        number = self.last_number(writer)
        return None if number is None else self.find(writer, number)

    def last_number(self, writer: str) -> int | None:
        """That of its newest step."""
        return max((int(path.stem) for path in (self._path / writer).glob("*.json")), default=None)

    def commit(self, step: Step) -> None:
        """From here on the step has happened. What it says is done, and done again by whoever comes after a crash."""
        replace_file(self._record(step.writer, step.number), msgspec.json.encode(step), PUBLIC)
        self.carry_out(step)

    def carry_out(self, step: Step) -> None:
        """Move what was staged to its place, then take away what it replaces."""
        for move in step.adds:
            place = self._root / move.place
            try:
                self._move(move)
            except FileNotFoundError:
                if not place.exists() and not self._was_replaced(move.place):
                    raise CorruptData(
                        f"{place} is missing, and so is what was staged for it: micro-batch {step.number} of "
                        f"{step.writer} is not whole; {self._way_out()}"
                    ) from None
        self._remove(step)

    def finish(self) -> None:
        """Do what the newest records say and a crash has left undone. Whoever reads the table sees whole steps then.

        A file that is neither staged nor in its place is no matter here: a later step may have taken it away, whose
        record is forgotten.
        """
        for writer in sorted(path.name for path in self._path.glob("*") if path.is_dir()):
            step = self.last(writer)
            if step is None:
                continue
            for move in step.adds:
                if (self._root / move.staged).exists():
                    self._move(move)
            self._remove(step)

    def _move(self, move: Move) -> None:
        place = self._root / move.place
        place.parent.mkdir(parents=True, exist_ok=True)
        (self._root / move.staged).rename(place)

    def _remove(self, step: Step) -> None:
        for name in step.removes:
            (self._root / name).unlink(missing_ok=True)

    def _was_replaced(self, place: str) -> bool:
        """Whether a later step took the file away: compaction does."""
        return any(place in step.removes for step in self.steps())

    def steps(self) -> list[Step]:
        """All there are, of every writer."""
        return [self._read(path) for path in sorted(self._path.rglob("*.json")) if not path.name.startswith(".")]

    def forget_before(self, writer: str, number: int) -> None:
        """Records that nobody asks for any more: Spark repeats its last micro-batch, and none before it."""
        for path in (self._path / writer).glob("*.json"):
            if int(path.stem) < number:
                path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Step:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Step)
        except msgspec.MsgspecError as error:
            raise CorruptData(
                f"{path} is no record of table {self._table.full_name}: {error}; {self._way_out()}"
            ) from None

    def _way_out(self) -> str:
        if self._table == DELIVERIES:
            return f"remove the directory {self._root}, and compute the table again by: sealane pipeline backfill"
        return RESTORE

    def _record(self, writer: str, number: int) -> Path:
        return self._path / writer / f"{number:012d}.json"
