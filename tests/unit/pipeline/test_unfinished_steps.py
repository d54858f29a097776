"""Whoever has the lake finds every step whole, whatever was killed before."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sealane.errors import CorruptData
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.failing import LakeFull
from sealane.pipeline.lake.holding import held
from sealane.pipeline.lake.tables import DELIVERIES, RAW_MESSAGES, Lake, Table

PLACES = ("topic=orders", "topic=payments")


class Killed(BaseException):
    """As a process that is killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def take_in(lake: Lake, number: int, table: Table = RAW_MESSAGES) -> None:
    """One row in each place."""

    def write(staging: Path) -> None:
        for place in PLACES:
            (staging / place).mkdir(parents=True)
            pq.write_table(pa.table({"offset": [number]}), staging / place / "part-0.parquet")

    append(lake, table, write, writer="messages", number=number)


def rows(lake: Lake) -> list[tuple[str, int]]:
    found = ds.dataset(lake.path(RAW_MESSAGES), format="parquet", partitioning="hive").to_table().to_pylist()
    return sorted((row["topic"], row["offset"]) for row in found)


def kill_after(patched: pytest.MonkeyPatch, name: str, times: int, within: str) -> None:
    """Let a method of paths be called so often on files that have this in their names."""
    method, done = getattr(Path, name), 0

    def call(self: Path, *args: Any, **named: Any) -> Any:
        nonlocal done
        if within in str(self):
            if done == times:
                raise Killed
            done += 1
        return method(self, *args, **named)

    patched.setattr(Path, name, call)


@pytest.mark.parametrize(("method", "within"), [("rename", "_staging"), ("unlink", "messages-")])
@pytest.mark.parametrize("times", [0, 1])
def test_a_compaction_that_was_killed_is_finished_before_anybody_reads(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, method: str, within: str, times: int
) -> None:
    for number in range(3):
        take_in(lake, number)
    expected = rows(lake)
    with monkeypatch.context() as patched:
        kill_after(patched, method, times, within)
        with pytest.raises(Killed):
            compact(lake, RAW_MESSAGES, small_files=2)
    with held(lake.root):
        assert rows(lake) == expected
        assert len(lake.files(RAW_MESSAGES)) == len(PLACES)


def test_moves_that_were_not_made_are_made(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        kill_after(patched, "rename", 1, "_staging")
        with pytest.raises(Killed):
            take_in(lake, 0)
    with held(lake.root):
        assert rows(lake) == [("orders", 0), ("payments", 0)]


def test_what_a_later_step_took_away_is_not_missed(lake: Lake) -> None:
    take_in(lake, 0)
    for path in lake.files(RAW_MESSAGES):
        path.unlink()
    with held(lake.root):
        assert not lake.exists(RAW_MESSAGES)


@pytest.mark.parametrize(
    ("table", "way_out"),
    [(RAW_MESSAGES, "restore the lake from a copy"), (DELIVERIES, "by: sealane pipeline backfill")],
)
def test_a_record_that_is_damaged_is_named_with_the_way_out(lake: Lake, table: Table, way_out: str) -> None:
    take_in(lake, 0, table)
    (record,) = lake.log_path(table).rglob("*.json")
    record.write_bytes(b"{")
    with pytest.raises(CorruptData, match=way_out) as told, held(lake.root):
        pass
    assert str(record) in str(told.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_with_the_lake_and_what_to_do(lake: Lake, number: int) -> None:
    with pytest.raises(LakeFull, match="free some") as told, held(lake.root):
        raise OSError(number, "it is full")
    assert str(lake.root) in str(told.value)
    with pytest.raises(FileNotFoundError), held(lake.root):
        raise FileNotFoundError(errno.ENOENT, "that is another matter")
