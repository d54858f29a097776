"""The lake's tables as Delta tables: the same rows after each export, each once, whatever is killed in between."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from sealane.errors import InvalidArgument, MissingExtra
from sealane.pipeline.lake import delta
from sealane.pipeline.lake.appending import append, replace
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.delta import APPLICATION, MirrorDiverged, mirror_table, mirror_tables
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.retention import forget_older
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake, Table

PLACE = "domain=default/topic=orders/date=2026-01-31"


class Killed(BaseException):
    """As a process that is killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "delta" / "raw" / "messages"


def writing(*numbers: int, place: str = PLACE, **columns: Any) -> Callable[[Path], None]:
    def write(staging: Path) -> None:
        (staging / place).mkdir(parents=True)
        pq.write_table(pa.table({"offset": list(numbers), **columns}), staging / place / "part-0.parquet")

    return write


def take_in(lake: Lake, number: int, *numbers: int, **more: Any) -> None:
    append(lake, RAW_MESSAGES, writing(*numbers, **more), writer="messages", number=number)


def offsets(target: Path) -> list[int]:
    return sorted(DeltaTable(target).to_pyarrow_table()["offset"].to_pylist())


def data_files(target: Path) -> list[Path]:
    return [path for path in target.rglob("*.parquet") if "_delta_log" not in path.parts]


def mirror(lake: Lake, target: Path) -> Any:
    return mirror_table(lake, RAW_MESSAGES, target)


def test_steps_arrive_once_and_a_run_without_any_adds_nothing(lake: Lake, target: Path) -> None:
    assert mirror(lake, target) is None
    take_in(lake, 0, 1, 2)
    assert mirror(lake, target).files_added == 1
    assert DeltaTable(target).to_pyarrow_table().to_pylist()[0] == {
        "offset": 1,
        "domain": "default",
        "topic": "orders",
        "date": date(2026, 1, 31),
    }
    take_in(lake, 1, 3)
    take_in(lake, 2, 4, place=PLACE.replace("31", "30"))
    done = mirror(lake, target)
    assert (done.version, done.rows, done.files_added, done.files_removed) == (1, 4, 2, 0)
    assert offsets(target) == [1, 2, 3, 4]
    assert DeltaTable(target).transaction_version(APPLICATION) == 1
    again = mirror(lake, target)
    assert (again.version, again.files_added, again.files_removed) == (1, 0, 0)
    assert all(path.stat().st_nlink == 2 for path in data_files(target))


def test_what_compaction_and_retention_take_away_is_gone_here_too(lake: Lake, target: Path) -> None:
    for number in range(3):
        take_in(lake, number, number)
    take_in(lake, 3, 3, place=PLACE.replace("31", "01"))
    mirror(lake, target)
    compact(lake, RAW_MESSAGES, small_files=2)
    done = mirror(lake, target)
    assert (done.files_added, done.files_removed, done.rows) == (1, 3, 4)
    assert offsets(target) == [0, 1, 2, 3]
    forget_older(lake, RAW_MESSAGES, {"*": 10}, date(2026, 2, 5))
    assert mirror(lake, target).files_removed == 1
    assert offsets(target) == [0, 1, 2]
    assert len(data_files(target)) == 1
    forget_older(lake, RAW_MESSAGES, {"*": 10}, date(2026, 12, 31))
    mirror(lake, target)
    assert (offsets(target), data_files(target)) == ([], [])


def test_a_file_that_was_written_again_takes_the_place_of_the_other(lake: Lake, target: Path) -> None:
    take_in(lake, 0, 1, 2)
    mirror(lake, target)
    (path,) = lake.files(RAW_MESSAGES)
    draft = path.with_suffix(".draft")
    pq.write_table(pa.table({"offset": [1, None]}), draft)
    draft.replace(path)
    done = mirror(lake, target)
    assert (done.files_added, done.files_removed) == (1, 1)
    assert sorted(DeltaTable(target).to_pyarrow_table()["offset"].to_pylist(), key=str) == [1, None]
    assert len(data_files(target)) == 1


@pytest.mark.parametrize("moment", ["_commit", "_clear", "_link"])
@pytest.mark.parametrize("is_first", [True, False])
def test_killed_at_any_moment_the_next_run_loses_and_doubles_nothing(
    lake: Lake, target: Path, monkeypatch: pytest.MonkeyPatch, moment: str, is_first: bool
) -> None:
    take_in(lake, 0, 1, 2)
    if not is_first:
        mirror(lake, target)
    take_in(lake, 1, 3, place=PLACE.replace("31", "30"))
    done = getattr(delta, moment)
    calls = 0

    def killed(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if moment == "_link":
            done(*args, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(delta, moment, killed)
        with pytest.raises(Killed):
            mirror(lake, target)
    assert calls == 1
    if not is_first:
        assert offsets(target) == ([1, 2, 3] if moment == "_clear" else [1, 2])
    take_in(lake, 2, 4)
    mirror(lake, target)
    assert offsets(target) == [1, 2, 3, 4]
    assert len(data_files(target)) == 3


def test_a_step_of_the_lake_that_was_killed_is_finished_first(
    lake: Lake, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        take_in(lake, number, number)
    with monkeypatch.context() as patched:
        patched.setattr(TableLog, "carry_out", _killed)
        with pytest.raises(Killed):
            compact(lake, RAW_MESSAGES, small_files=2)
    mirror(lake, target)
    assert offsets(target) == [0, 1, 2]


def _killed(*args: Any) -> None:
    raise Killed


def test_columns_that_came_later_are_there_also_within_others_and_times_without_a_zone(
    lake: Lake, target: Path
) -> None:
    take_in(lake, 0, 1, who=pa.array([{"name": "Ann"}]))
    mirror(lake, target)
    who = pa.array([{"name": "Bob", "age": 7}])
    take_in(lake, 1, 2, who=who, at=pa.array([0], pa.timestamp("us")))
    mirror(lake, target)
    found = {row["offset"]: row for row in DeltaTable(target).to_pyarrow_table().to_pylist()}
    assert (found[1]["who"], found[1]["at"]) == ({"name": "Ann", "age": None}, None)
    assert found[2]["who"] == {"name": "Bob", "age": 7}
    assert found[2]["at"].tzinfo is None
    assert mirror(lake, target).files_added == 0


def test_a_table_that_is_made_anew_may_have_other_columns_and_other_tables_may_not(
    lake: Lake, tmp_path: Path, target: Path
) -> None:
    own = Table("facts", "busiest", ("domain",))
    replace(lake, own, writing(1, place="domain=a b"), writer="own")
    assert [done.table for done in mirror_tables(lake, tmp_path / "delta")] == ["facts/busiest"]
    replace(lake, own, lambda staging: _texts(staging / "domain=a b"), writer="own")
    mirror_tables(lake, tmp_path / "delta")
    found = DeltaTable(tmp_path / "delta" / "facts" / "busiest").to_pyarrow_table()
    assert found.to_pylist() == [{"offset": "x", "domain": "a b"}]
    take_in(lake, 0, 1)
    mirror(lake, target)
    append(lake, RAW_MESSAGES, lambda staging: _texts(staging / PLACE), writer="messages", number=1)
    with pytest.raises(MirrorDiverged, match="offset"):
        mirror(lake, target)


def _texts(directory: Path) -> None:
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"offset": ["x"]}), directory / "part-0.parquet")


def test_of_two_exports_at_once_one_fails(lake: Lake, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take_in(lake, 0, 1)
    mirror(lake, target)
    take_in(lake, 1, 2)
    link = delta._link

    def other_first(path: Path, mirrored: Path) -> None:
        monkeypatch.setattr(delta, "_link", link)
        mirror(lake, target)
        link(path, mirrored)

    monkeypatch.setattr(delta, "_link", other_first)
    with pytest.raises(Exception, match=r"(?i)transaction"):
        mirror(lake, target)
    assert offsets(target) == [1, 2]


def test_a_mirror_within_the_lake_is_refused(lake: Lake) -> None:
    with pytest.raises(InvalidArgument, match="within each other"):
        mirror_tables(lake, lake.root / "delta")
    with pytest.raises(InvalidArgument, match="within each other"):
        mirror_tables(lake, lake.root.parent)


def test_a_missing_library_is_asked_for_by_name(lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sealane\[delta\]'"):
        mirror_tables(lake, tmp_path / "delta")


def test_two_file_systems_get_a_copy(lake: Lake, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crosses(*args: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", crosses)
    take_in(lake, 0, 1, 2)
    mirror(lake, target)
    assert offsets(target) == [1, 2]
    assert {path.stat().st_nlink for path in data_files(target)} == {1}
