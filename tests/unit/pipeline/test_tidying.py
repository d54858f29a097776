"""Tidying the tables of a lake: all at once, or in turns."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.compacting import SMALL_FILES
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, DELIVERIES, RAW_MESSAGES, Lake
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.tidying import Tidying

FILLED = (RAW_MESSAGES, CLEAN_MESSAGES, DELIVERIES)
TODAY = date(2026, 1, 31)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """With as many small files in three tables as are put together."""
    lake = Lake(tmp_path / "lake")

    def write(staging: Path) -> None:
        place = staging / "domain=shop/topic=orders/date=2026-01-31"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"offset": [1]}), place / "part-0.parquet")

    for table in FILLED:
        for number in range(SMALL_FILES):
            append(lake, table, write, writer="messages", number=number)
    return lake


def untidy(lake: Lake) -> int:
    return sum(len(lake.files(table)) > 1 for table in FILLED)


def test_all_is_tidied_at_once_if_there_is_time(lake: Lake) -> None:
    Tidying(lake, PipelineSettings(lake=lake.root)).tidy(TODAY)
    assert untidy(lake) == 0


def test_tables_take_turns_if_there_is_none(lake: Lake) -> None:
    tidying = Tidying(lake, PipelineSettings(lake=lake.root), seconds_max=0.0)
    left: list[int] = []
    while untidy(lake) and len(left) < 100:
        tidying.tidy(TODAY)
        left.append(untidy(lake))
    assert sorted(left, reverse=True) == left
    assert set(left) == {2, 1, 0}
