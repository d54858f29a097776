"""The step that brings clean messages into their topics' tables: once, wherever it is killed, and again from all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, Lake, typed_table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps import typed
from sealane.pipeline.steps.typed import Progress, backfill_typed, type_new
from sealane.schemas.formats import Definition

TABLE = typed_table("shop/orders", 1)
NO_SPARK: Any = None
"""So little is done without."""


class Killed(BaseException):
    """As a process that is killed here."""


class Filling:
    """A lake whose topic has a schema, as its node says."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake = Lake(directory / "lake")
        self.keys = LakeKeys.open_or_make(directory / "lake.keys")
        self.asked = 0
        self._settings = PipelineSettings(lake=self.lake.root)
        self._versions = [self._schema("n")]
        monkeypatch.setattr(typed, "registered_schemas", self._registered)

    def _registered(self, _: PipelineSettings) -> dict[str, TopicSchema]:
        self.asked += 1
        return {"shop/orders": TopicSchema(tuple(reversed(self._versions)))}

    @staticmethod
    def _schema(*names: str) -> Definition:
        properties = {name: {"type": "integer"} for name in names}
        return Definition("json", json.dumps({"type": "object", "properties": properties}))

    def register(self, *names: str) -> None:
        self._versions.append(self._schema(*names))

    def clean(self, number: int, *values: int, writer: str = "messages", sealed_by: int | None = None) -> None:
        """A micro-batch comes into the clean table."""
        count = len(values)
        rows = pa.table(
            {
                "id": pa.array([b"%016d" % value for value in values]),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(values, pa.int64()),
                "created": pa.array([datetime(2026, 1, 31, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")),
                "key": pa.array([None] * count, pa.binary()),
                "body": pa.array([b'{"n":%d,"m":%d}' % (value, value) for value in values], pa.binary()),
                "body_format": pa.array(["json"] * count),
                "sealed_by": pa.array([sealed_by] * count, pa.int32()),
            }
        )

        def write(staging: Path) -> None:
            place = staging / "domain=shop" / "topic=orders" / "date=2026-01-31"
            place.mkdir(parents=True)
            pq.write_table(rows, place / "part-0.parquet")

        append(self.lake, CLEAN_MESSAGES, write, writer=writer, number=number)

    def type_new(self) -> int:
        return type_new(NO_SPARK, self.lake, self._settings, self.keys)

    def backfill(self) -> int:
        return backfill_typed(NO_SPARK, self.lake, self._settings, self.keys)

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        found = [row for path in self.lake.files(TABLE) for row in pq.ParquetFile(path).read().to_pylist()]
        return sorted(tuple(row.get(name) for name in names) for row in found)


@pytest.fixture
def filling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Filling:
    return Filling(tmp_path, monkeypatch)


def test_each_micro_batch_comes_in_once(filling: Filling) -> None:
    assert filling.type_new() == 0
    filling.clean(0, 1, 2)
    filling.clean(1, 3)
    assert filling.type_new() == 3
    assert filling.type_new() == 0
    filling.clean(2, 4)
    filling.register("n", "m")
    assert filling.type_new() == 1
    assert filling.rows("n", "m") == [(1, None), (2, None), (3, None), (4, 4)]


def test_another_writer_of_the_clean_table_has_numbers_of_its_own(filling: Filling) -> None:
    filling.clean(5, 1, writer="clean")
    filling.type_new()
    filling.clean(0, 2)
    assert (filling.type_new(), filling.type_new()) == (1, 0)
    assert filling.rows("n") == [(1,), (2,)]


def test_what_is_not_in_the_open_is_not_even_asked_about(filling: Filling) -> None:
    filling.clean(0, 1, sealed_by=1)
    assert (filling.type_new(), filling.asked) == (0, 0)
    assert filling.lake.typed_tables() == []


def test_a_lake_that_was_there_before_is_taken_in_whole(filling: Filling) -> None:
    for number in range(3):
        filling.clean(number, number)
    assert compact(filling.lake, CLEAN_MESSAGES, small_files=2) is not None
    filling.clean(3, 3)
    assert filling.type_new() == 4
    assert filling.type_new() == 0
    filling.clean(4, 4)
    assert filling.type_new() == 1
    assert filling.rows("n") == [(0,), (1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    ("moment", "is_first"), [("append", False), ("keep", False), ("replace", True), ("keep", True)]
)
def test_killed_anywhere_the_next_cycle_loses_and_doubles_nothing(
    filling: Filling, monkeypatch: pytest.MonkeyPatch, moment: str, is_first: bool
) -> None:
    if not is_first:
        filling.clean(0, 1)
        filling.type_new()
    filling.clean(1, 2, 3)
    with monkeypatch.context() as patched:
        _kill_at(moment, patched)
        with pytest.raises(Killed):
            filling.type_new()
    filling.clean(2, 4)
    filling.type_new()
    assert filling.rows("n") == [*([] if is_first else [(1,)]), (2,), (3,), (4,)]


@pytest.mark.parametrize("moment", ["replace", "keep"])
def test_a_backfill_that_was_killed_is_done_again_by_the_next_cycle(
    filling: Filling, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    filling.clean(0, 1)
    filling.type_new()
    filling.register("n", "m")
    filling.clean(1, 2)
    with monkeypatch.context() as patched:
        _kill_at(moment, patched)
        with pytest.raises(Killed):
            filling.backfill()
    filling.type_new()
    assert filling.rows("n", "m") == [(1, 1), (2, 2)]
    assert filling.backfill() == 2
    assert filling.rows("n", "m") == [(1, 1), (2, 2)]


def _kill_at(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When rows have come into a table, and before it is noted that they have."""
    if moment == "keep":
        monkeypatch.setattr(Progress, "keep", _killed)
    else:
        monkeypatch.setattr(typed, moment, _killed_after(getattr(typed, moment)))


def _killed(*args: Any) -> None:
    raise Killed


def _killed_after(done: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> None:
        done(*args, **named)
        raise Killed

    return call
