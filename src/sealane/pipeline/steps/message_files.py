"""Which files have the messages of some offsets: by what Parquet says of each, and without reading any.

What was learned of a file is remembered for as long as this process runs, so that a cycle looks at new ones only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake

_FILES_REMEMBERED = 1 << 16


class RowGroup(NamedTuple):
    """What a part of a file has, by its smallest and largest values."""

    number: int
    partitions: tuple[int, int]
    offsets: tuple[int, int]

    def may_have(self, partition: int, first: int, stop: int) -> bool:
        return self.partitions[0] <= partition <= self.partitions[1] and (
            self.offsets[0] < stop and first <= self.offsets[1]
        )


class Found(NamedTuple):
    """A file, and the parts of it that may have what is looked for."""

    path: str
    row_groups: list[int]


def files_with(lake: Lake, topic: tuple[str, str], partition: int, first: int, stop: int) -> list[Found]:
    """Those that may have messages of these offsets, `stop` not among them; `topic` is its domain and name."""
    return [
        Found(str(path), chosen)
        for path in _files(lake, *topic)
        if (chosen := [each.number for each in _row_groups(path) if each.may_have(partition, first, stop)])
    ]


def _files(lake: Lake, domain: str, topic: str) -> Iterator[Path]:
    yield from sorted((lake.path(RAW_MESSAGES) / f"domain={domain}" / f"topic={topic}").glob("date=*/[!_.]*.parquet"))


def _row_groups(path: Path) -> list[RowGroup]:
    # A file that is replaced, as by sealing it anew, is another one.
    found = path.stat()
    return _read(str(path), found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=_FILES_REMEMBERED)
def _read(path: str, _modified_ns: int, _size: int) -> list[RowGroup]:
    metadata = pq.read_metadata(path)
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        partitions, offsets = (group.column(places[name]).statistics for name in ("partition", "offset"))
        groups.append(RowGroup(number, (partitions.min, partitions.max), (offsets.min, offsets.max)))
    return groups
