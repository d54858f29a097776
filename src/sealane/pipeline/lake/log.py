"""The log of a table: which steps have come in, and what each has changed. A record is the step's one moment."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sealane.errors import CorruptData
from sealane.pipeline.lake.tables import Lake, Table
from sealane.whole_files import PUBLIC, replace_file


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
        path = self._record(writer, number)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Step)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise CorruptData(f"{path} is no record of table {self._table.full_name}: {error}; restore it") from None

    def last(self, writer: str) -> Step | None:
        """The newest step of a writer."""
        numbers = [int(path.stem) for path in (self._path / writer).glob("*.json")]
        return self.find(writer, max(numbers)) if numbers else None

    def commit(self, step: Step) -> None:
        """From here on the step has happened. What it says is done, and done again by whoever comes after a crash."""
        replace_file(self._record(step.writer, step.number), msgspec.json.encode(step), PUBLIC)
        self.carry_out(step)

    def carry_out(self, step: Step) -> None:
        """Move what was staged to its place, then take away what it replaces."""
        for move in step.adds:
            staged, place = self._root / move.staged, self._root / move.place
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                staged.rename(place)
            except FileNotFoundError:
                if not place.exists() and not self._was_replaced(move.place):
                    raise CorruptData(
                        f"{place} is missing, and so is what was staged for it: micro-batch {step.number} of "
                        f"{step.writer} is not whole; restore the lake, or backfill table {self._table.full_name}"
                    ) from None
        for name in step.removes:
            (self._root / name).unlink(missing_ok=True)

    def _was_replaced(self, place: str) -> bool:
        """Whether a later step took the file away: compaction does."""
        return any(place in step.removes for step in self.steps())

    def steps(self) -> list[Step]:
        """All there are, of every writer."""
        return [
            msgspec.json.decode(path.read_bytes(), type=Step)
            for path in sorted(self._path.rglob("*.json"))
            if not path.name.startswith(".")
        ]

    def forget_before(self, writer: str, number: int) -> None:
        """Records that nobody asks for any more: Spark repeats its last micro-batch, and none before it."""
        for path in (self._path / writer).glob("*.json"):
            if int(path.stem) < number:
                path.unlink(missing_ok=True)

    def _record(self, writer: str, number: int) -> Path:
        return self._path / writer / f"{number:012d}.json"
