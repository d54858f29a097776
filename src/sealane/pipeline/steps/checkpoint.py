"""Whether a query's checkpoint can be gone on from, and belongs to the tables that the query writes.

Spark reads it too, and would tell of damage by a stack trace; of a checkpoint that is older than its tables, or newer,
it would say nothing at all, and rows would come in twice or never.
"""

from __future__ import annotations

import json
from pathlib import Path

from sealane.errors import CorruptData
from sealane.pipeline.lake.log import RESTORE, TableLog
from sealane.pipeline.lake.tables import TABLES, Lake

OFFSETS = "offsets"
"""What each micro-batch is to take in, by its number."""
COMMITS = "commits"
"""Which are done."""


def check_checkpoint(lake: Lake, query: str) -> None:
    """Raise `CorruptData`, with the file and the way out, unless the query can go on where it was."""
    path = lake.checkpoint_path(query)
    begun, done = _newest(path / OFFSETS), _newest(path / COMMITS)
    if begun is not None:
        _check_lines(path / OFFSETS / str(begun), RESTORE)
    if done is not None:
        again = f"Spark does micro-batch {done} again, which the tables have once"
        way_out = f"remove it and .{done}.crc beside it: {again}"
        _check_lines(path / COMMITS / str(done), way_out)
    _check_tables(lake, query, begun, done)


def _check_tables(lake: Lake, query: str, begun: int | None, done: int | None) -> None:
    """None is in a table that was not begun, and one that is done is in every table of the query. Tables of single
    topics have only those in which the topic has something.
    """
    for table in lake.tables():
        has = TableLog(lake, table).last_number(query)
        if has is None:
            continue
        if has > (-1 if begun is None else begun):
            raise CorruptData(
                f"{lake.path(table)} has micro-batch {has} of {query}, and the checkpoint "
                f"{lake.checkpoint_path(query)} {'is not there' if begun is None else f'ends with {begun}'}: they "
                f"belong together; {RESTORE}"
            )
        if table in TABLES and done is not None and has < done:
            raise CorruptData(
                f"{lake.path(table)} ends with micro-batch {has} of {query}, and the checkpoint "
                f"{lake.checkpoint_path(query)} says that {done} is done: they belong together; {RESTORE}"
            )


def _newest(directory: Path) -> int | None:
    return max((int(path.name) for path in directory.glob("*") if path.name.isdigit()), default=None)


def _check_lines(path: Path, way_out: str) -> None:
    """A version, then a line of JSON for each thing that it keeps; `-` stands for none."""
    try:
        version, *lines = path.read_text(encoding="utf-8").splitlines()
        if not version.startswith("v") or not lines:
            raise ValueError("it ends too soon")
        for line in lines:
            if line != "-":
                json.loads(line)
    except ValueError as error:
        raise CorruptData(f"{path}, of Spark's checkpoint, cannot be read: {error}; {way_out}") from None
