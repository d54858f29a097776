"""`sealane log verify`: read every byte, check every checksum and, with the key, open every sealed entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sealane.cli.data_directory import KIND_NAMES, DataDirectory, Piece
from sealane.engine.contract import PartitionKey
from sealane.engine.local.compacted import open_journal, open_messages
from sealane.engine.local.index import Row
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.record import MESSAGES, SEALED
from sealane.engine.local.segment import FoundRecord
from sealane.errors import CorruptData
from sealane.security.at_rest.keys import KeyDestroyed
from sealane.security.at_rest.sealing import Sealer


@dataclass(frozen=True)
class Damage:
    """Something that is not as it was written. What is not known is None."""

    file: str | None
    position: int | None
    partition: str | None
    kind: str | None
    base: int | None
    stop: int | None
    problem: str

    def __str__(self) -> str:
        place = f"{self.file} at byte {self.position:,}" if self.position is not None else self.file
        what = f"{self.partition} {self.kind} {self.base}–{(self.stop or 0) - 1}" if self.partition else None
        return ": ".join(part for part in (place, what, self.problem) if part)


@dataclass
class Verdict:
    files: int = 0
    entries: int = 0
    bytes: int = 0
    tags_checked: bool = False
    """Whether sealed entries were opened; without the master key only their checksums are."""
    shredded: int = 0
    """Entries whose keys were destroyed on purpose."""
    unfinished_bytes: int = 0
    """Bytes of a write that has not finished, or that a crash cut short: nobody was promised them."""
    damage: list[Damage] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"sound": not self.damage, **asdict(self)}


Progress = Callable[[int, int], None]
"""Told the bytes checked so far and the bytes there are."""


def verify(directory: Path, progress: Progress) -> Verdict:
    """Check everything. A running node may compact meanwhile: what it has replaced is checked where it went."""
    verdict = Verdict()
    checked: set[str] = set()
    while True:
        with DataDirectory.look(directory) as view:
            check = _Check(view, verdict, checked, progress)
            if check.run():
                return verdict


class _Check:
    def __init__(self, view: DataDirectory, verdict: Verdict, checked: set[str], progress: Progress) -> None:
        self._view = view
        self._verdict = verdict
        self._checked = checked
        self._progress = progress
        self._sealer: Sealer | None = view.sealer()
        self._shredded = {key.domain for key in view.metadata.wrapped_keys() if key.wrapped is None}
        verdict.tags_checked = self._sealer is not None
        self._bytes_total = verdict.bytes + sum(
            _size(view, name)
            for name in (*view.segments, *(file.name for file in view.compacted))
            if name not in checked
        )

    def run(self) -> bool:
        """False when files have gone meanwhile, so that there are others to look at."""
        vanished = False
        for name in self._view.segments:
            if name not in self._checked:
                vanished |= not self._file(name, lambda name=name: self._segment(name))  # type: ignore[misc]
        for file in self._view.compacted:
            if file.name not in self._checked:
                vanished |= not self._file(file.name, lambda file=file: self._compacted(file))  # type: ignore[misc]
        if not vanished:
            self._gaps()
        return not vanished

    def _file(self, name: str, check: Callable[[], None]) -> bool:
        try:
            check()
        except FileNotFoundError:
            if self._superseded(name):
                return False
            self._damage(name, None, None, None, 0, 0, "the file is missing")
        self._verdict.files += 1
        self._checked.add(name)
        return True

    def _superseded(self, name: str) -> bool:
        """Whether a file that is gone was removed rightly: a newer view no longer has it."""
        with DataDirectory.look(Path(self._view.files.location)) as newer:
            return name not in newer.segments and name not in {file.name for file in newer.compacted}

    def _segment(self, name: str) -> None:
        size = self._view.file(name).size
        found = self._view.scan(name)
        newest = name == self._view.segments[-1]
        for each in found.records:
            if newest and each is found.records[-1] and each.damaged:
                self._verdict.unfinished_bytes += found.written_end - each.start
                break
            self._record(name, each)
        else:
            if found.written_end > found.end:
                if newest:
                    self._verdict.unfinished_bytes += found.written_end - found.end
                else:
                    self._damage(name, found.end, None, None, 0, 0, "bytes after the last record are not zero")
        for gap in found.gaps:
            self._damage(
                name,
                gap.start,
                None,
                None,
                0,
                0,
                f"{gap.stop - gap.start:,} bytes are damaged beyond telling their content",
            )
        self._advance(size)

    def _record(self, name: str, found: FoundRecord) -> None:
        for part, sound in (("head", found.head_sound), ("tail", found.tail_sound)):
            if not sound:
                self._damage(name, found.start, None, None, 0, 0, f"the record's {part} is damaged (its copy is sound)")
        for number, (entry, position) in enumerate(found.head.bodies()):
            row = Row.of(entry, 0, found.start + position, found.head.time_us)
            self._entry(Piece(name, row), entry.partition, entry.kind, damaged=number in found.damaged)

    def _compacted(self, file: CompactedFile) -> None:
        size = self._view.file(file.name).size
        if size != file.file_bytes:
            self._damage(
                file.name,
                size,
                None,
                None,
                0,
                0,
                f"the file has {size:,} bytes, it was written with {file.file_bytes:,}",
            )
        for place in file.places:
            row = Row(place.base, place.count, 0, place.position, place.length, *place[4:])
            self._entry(Piece(file.name, row), file.partition, file.kind, damaged=False)
        self._advance(size)

    def _entry(self, piece: Piece, partition: PartitionKey, kind: int, *, damaged: bool) -> None:
        self._verdict.entries += 1
        row = piece.row
        try:
            if damaged:
                raise CorruptData("the checksum does not match")
            raw = self._view.read(piece)
            if self._sealer is not None or not row.flags & SEALED:
                opens = open_messages if kind == MESSAGES else open_journal
                opens(raw, partition=partition, base=row.base, count=row.count, flags=row.flags, sealer=self._sealer)
        except KeyDestroyed:
            self._verdict.shredded += 1
        except CorruptData as error:
            self._damage(piece.file, row.position, partition, kind, row.base, row.stop, str(error))

    def _gaps(self) -> None:
        """Offsets that no file holds: damage that was met, and left out, before."""
        found = {(each.partition, each.kind, each.base) for each in self._verdict.damage}
        for key, partition in sorted(self._view.partitions.items()):
            for kind, name in KIND_NAMES.items():
                for span in partition.log(kind).lost():
                    if key.domain not in self._shredded and (str(key), name, span.start) not in found:
                        self._damage(None, None, key, kind, span.start, span.stop, "lost earlier: no file holds them")

    def _damage(
        self,
        file: str | None,
        position: int | None,
        partition: PartitionKey | None,
        kind: int | None,
        base: int,
        stop: int,
        problem: str,
    ) -> None:
        known = partition is not None
        self._verdict.damage.append(
            Damage(
                file,
                position,
                str(partition) if known else None,
                KIND_NAMES.get(kind) if kind is not None else None,
                base if known else None,
                stop if known else None,
                problem,
            )
        )

    def _advance(self, count: int) -> None:
        self._verdict.bytes += count
        self._progress(self._verdict.bytes, max(self._bytes_total, self._verdict.bytes))


def _size(view: DataDirectory, name: str) -> int:
    try:
        return view.file(name).size
    except FileNotFoundError:
        return 0
