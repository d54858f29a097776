"""Which messages came in within the last day: what a micro-batch leaves to those after it.

Each leaves a file of the runs of names that it has taken in, in their order: see `sealane.pipeline.clean.repeats`.
Files are put together as their number grows, so that there are some dozens whatever the number of micro-batches. To
look a run up is a search in each of them, and reads little of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from sealane.pipeline.clean.repeats import NAME, NAME_BYTES, RUN, Mask, Names, Numbers, Runs, find_repeats, overlap
from sealane.pipeline.lake.tables import Lake
from sealane.whole_files import PUBLIC, replace_file

TOGETHER = 16
"""So many files of one size become one of the next."""
LEVELS = 3
"""So often. A file is forgotten as a whole, so not too much is to be in one."""

_SCHEMA = pa.schema([("first", pa.binary(NAME_BYTES)), ("count", pa.int64())])
_NEWEST = b"newest_us"


@dataclass(frozen=True, slots=True)
class SeenFile:
    """The runs of some micro-batches, from `first` to `last`, mapped and not read."""

    path: Path
    level: int
    first: int
    last: int

    def newest_us(self) -> int:
        """When the last of them came in, in microseconds since 1970."""
        with pa.memory_map(str(self.path)) as file:
            return int(pa.ipc.open_file(file).schema.metadata[_NEWEST])

    def runs(self) -> tuple[Names, Numbers]:
        table = pa.ipc.open_file(pa.memory_map(str(self.path))).read_all()
        if not len(table):
            return np.empty(0, NAME), np.empty(0, np.int64)
        names, counts = (table[name].chunk(0) for name in ("first", "count"))
        return np.frombuffer(names.buffers()[1], NAME, len(names)), counts.to_numpy()

    def overlap(self, firsts: Names, counts: Numbers) -> Mask:
        known, known_counts = self.runs()
        return overlap(known, known_counts, firsts, counts)


class SeenIds:
    """The files of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._root = lake.root / "state" / "ids"

    def before(self, number: int, oldest_us: int) -> list[SeenFile]:
        """What micro-batches before this one have left, as far as it came in since then."""
        return [each for each in self._files() if each.last < number and each.newest_us() >= oldest_us]

    def keep(self, runs: Runs, number: int, now_us: int) -> None:
        """What this micro-batch leaves; the same again if it is done again."""
        if len(runs):
            _write(self._path(0, number, number), np.ascontiguousarray(runs["first"]), runs["count"], now_us)

    def tidy(self, number: int, oldest_us: int) -> None:
        """Forget what is older, and put together what micro-batches before this one have left: it may be done again."""
        kept = self._files()
        for each in {*self._found()} - {*kept}:
            each.path.unlink()
        for each in kept:
            if each.newest_us() < oldest_us:
                each.path.unlink()
        for level in range(LEVELS):
            some = [each for each in self._files() if each.level == level and each.last < number]
            while len(some) >= TOGETHER:
                self._put_together(level + 1, some[:TOGETHER])
                some = some[TOGETHER:]

    def size_bytes(self) -> int:
        return sum(each.path.stat().st_size for each in self._files())

    def _put_together(self, level: int, files: list[SeenFile]) -> None:
        firsts, counts = (np.concatenate(each) for each in zip(*(file.runs() for file in files), strict=True))
        order = np.argsort(firsts, kind="stable")
        firsts, counts = firsts[order], counts[order]
        newest = max(file.newest_us() for file in files)
        firsts, counts = _without_overlaps(firsts, counts)
        _write(self._path(level, files[0].first, files[-1].last), firsts, counts, newest)
        for file in files:
            file.path.unlink()

    def _files(self) -> list[SeenFile]:
        """In the order of their micro-batches. A file whose content is in a larger one was about to be taken away."""
        found = sorted(self._found(), key=lambda file: (file.first, -file.level))
        kept: list[SeenFile] = []
        for file in found:
            if kept and file.last <= kept[-1].last:
                continue
            kept.append(file)
        return kept

    def _found(self) -> Iterator[SeenFile]:
        for path in self._root.glob("[0-9]*.arrow"):
            level, first, last = map(int, path.stem.split("-"))
            yield SeenFile(path, level, first, last)

    def _path(self, level: int, first: int, last: int) -> Path:
        return self._root / f"{level}-{first:012d}-{last:012d}.arrow"


def _without_overlaps(firsts: Names, counts: Numbers) -> tuple[Names, Numbers]:
    """The same names, each once: one that came again is in two files."""
    runs = np.zeros(len(firsts), dtype=RUN)
    runs["first"], runs["count"] = firsts, counts
    _, kept = find_repeats(runs, ())
    return np.ascontiguousarray(kept["first"]), np.ascontiguousarray(kept["count"])


def _write(path: Path, firsts: Names, counts: Numbers, newest_us: int) -> None:
    names = pa.Array.from_buffers(pa.binary(NAME_BYTES), len(firsts), [None, pa.py_buffer(firsts.tobytes())])
    table = pa.table([names, pa.array(counts, pa.int64())], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA.with_metadata({_NEWEST: str(newest_us)})) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, sink.getvalue().to_pybytes(), PUBLIC)
