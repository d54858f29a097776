"""The lake's tables: each step comes in once, whatever is killed, and small files become large ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sealane.errors import CorruptData
from sealane.pipeline.lake import log as lake_log
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake

PLACE = "domain=default/topic=orders/date=2026-01-31"


class Killed(BaseException):
    """As a process that is killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def writing(*numbers: int, place: str = PLACE, **columns: Any) -> Callable[[Path], None]:
    def write(staging: Path) -> None:
        (staging / place).mkdir(parents=True)
        pq.write_table(pa.table({"offset": list(numbers), **columns}), staging / place / "part-0.parquet")

    return write


def offsets(lake: Lake) -> list[int]:
    """As any tool reads them."""
    table = ds.dataset(lake.path(RAW_MESSAGES), format="parquet", partitioning="hive").to_table()
    return sorted(table["offset"].to_pylist())


def take_in(lake: Lake, number: int, *numbers: int) -> None:
    append(lake, RAW_MESSAGES, writing(*numbers), writer="messages", number=number)


def test_what_is_appended_is_read_without_sealane(lake: Lake) -> None:
    take_in(lake, 0, 1, 2, 3)
    take_in(lake, 1, 4)
    assert offsets(lake) == [1, 2, 3, 4]
    assert not list(lake.path(RAW_MESSAGES).glob("_staging/*"))


def test_a_step_that_has_come_in_is_not_done_again(lake: Lake) -> None:
    take_in(lake, 0, 1, 2, 3)
    take_in(lake, 0, 7, 8, 9)
    assert offsets(lake) == [1, 2, 3]


@pytest.mark.parametrize("moment", ["before the record", "after the record", "after one move", "after all moves"])
def test_killed_at_any_moment_the_next_try_makes_it_whole_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def two_files(staging: Path) -> None:
        writing(1, 2)(staging)
        writing(3, place=PLACE.replace("31", "30"))(staging)

    moves = {"after the record": 0, "after one move": 1, "after all moves": 2}.get(moment, 0)
    rename, done = Path.rename, 0

    def killed_rename(self: Path, target: Any) -> Path:
        nonlocal done
        if "_staging" in str(self):
            if done == moves:
                raise Killed
            done += 1
        return rename(self, target)

    with monkeypatch.context() as patched:
        if moment == "before the record":
            patched.setattr(lake_log, "replace_file", _killed)
        elif moment == "after all moves":
            patched.setattr(shutil, "rmtree", _killed_at_the_second_call())
        else:
            patched.setattr(Path, "rename", killed_rename)
        with pytest.raises(Killed):
            append(lake, RAW_MESSAGES, two_files, writer="messages", number=0)
    append(lake, RAW_MESSAGES, two_files, writer="messages", number=0)
    assert offsets(lake) == [1, 2, 3]


def _killed(*args: Any) -> None:
    raise Killed


def _killed_at_the_second_call() -> Callable[..., None]:
    calls = 0

    def call(*args: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed

    return call


def test_a_record_that_is_damaged_is_named(lake: Lake) -> None:
    take_in(lake, 0, 1)
    (record,) = lake.log_path(RAW_MESSAGES).rglob("*.json")
    record.write_bytes(b"{")
    with pytest.raises(CorruptData, match="raw/messages"):
        take_in(lake, 0, 1)


def test_files_that_a_record_promises_and_nobody_has_are_told(lake: Lake) -> None:
    take_in(lake, 0, 1)
    for path in lake.files(RAW_MESSAGES):
        path.unlink()
    with pytest.raises(CorruptData, match="not whole"):
        take_in(lake, 0, 1)


# --- compaction -----------------------------------------------------------------------------------------------------


def test_small_files_are_put_together_and_keep_their_rows(lake: Lake) -> None:
    for number in range(20):
        take_in(lake, number, number)
    step = compact(lake, RAW_MESSAGES)
    assert step is not None
    assert step.rows == 20
    assert offsets(lake) == list(range(20))
    assert len(lake.files(RAW_MESSAGES)) == 1
    assert compact(lake, RAW_MESSAGES) is None


def test_few_files_are_left_as_they_are(lake: Lake) -> None:
    take_in(lake, 0, 1)
    take_in(lake, 1, 2)
    assert compact(lake, RAW_MESSAGES) is None
    assert len(lake.files(RAW_MESSAGES)) == 2


def test_columns_that_came_later_are_kept(lake: Lake) -> None:
    take_in(lake, 0, 1)
    append(lake, RAW_MESSAGES, writing(2, city=["Berlin"]), writer="messages", number=1)
    compact(lake, RAW_MESSAGES, small_files=2)
    (path,) = lake.files(RAW_MESSAGES)
    table = pq.ParquetFile(path).read()
    assert table.to_pylist() == [{"offset": 1, "city": None}, {"offset": 2, "city": "Berlin"}]


def test_a_compaction_that_was_killed_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        take_in(lake, number, number)
    unlink, gone = Path.unlink, 0

    def killed_unlink(self: Path, missing_ok: bool = False) -> None:
        nonlocal gone
        if self.suffix == ".parquet":
            gone += 1
            if gone == 2:
                raise Killed
        unlink(self, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", killed_unlink)
        with pytest.raises(Killed):
            compact(lake, RAW_MESSAGES, small_files=2)
    assert compact(lake, RAW_MESSAGES, small_files=2) is None
    assert offsets(lake) == [0, 1, 2]


def test_a_micro_batch_whose_files_were_compacted_is_still_done(lake: Lake) -> None:
    for number in range(3):
        take_in(lake, number, number)
    compact(lake, RAW_MESSAGES, small_files=2)
    take_in(lake, 2, 99)
    assert offsets(lake) == [0, 1, 2]
    assert TableLog(lake, RAW_MESSAGES).last("messages") is not None
