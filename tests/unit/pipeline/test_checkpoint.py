"""A checkpoint that cannot be gone on from is named, with the way out, before Spark stumbles over it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.errors import CorruptData
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import DELIVERIES, RAW_MESSAGES, Lake, Table
from sealane.pipeline.steps.checkpoint import check_checkpoint

OFFSETS = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"default/orders":{"incarnation":1,"0":17}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def begin(lake: Lake, number: int, text: str = OFFSETS) -> Path:
    return write(lake.checkpoint_path("messages") / "offsets" / str(number), text)


def end(lake: Lake, number: int, text: str = COMMIT) -> Path:
    return write(lake.checkpoint_path("messages") / "commits" / str(number), text)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def take_in(lake: Lake, number: int, table: Table = RAW_MESSAGES) -> None:
    def some(staging: Path) -> None:
        staging.mkdir(parents=True)
        pq.write_table(pa.table({"offset": [number]}), staging / "part-0.parquet")

    append(lake, table, some, writer="messages", number=number)


def test_a_lake_that_is_new_and_one_that_was_stopped_anywhere_can_be_gone_on_from(lake: Lake) -> None:
    check_checkpoint(lake, "messages")
    begin(lake, 0)
    check_checkpoint(lake, "messages")
    take_in(lake, 0)
    check_checkpoint(lake, "messages")
    end(lake, 0)
    check_checkpoint(lake, "messages")
    begin(lake, 1)
    check_checkpoint(lake, "messages")


@pytest.mark.parametrize("text", ["", "v1", "v1\n{", "\x00\x00\x00", 'v1\n{"batchWatermarkMs":0}\n{"default/ord'])
def test_offsets_that_cannot_be_read_are_named(lake: Lake, text: str) -> None:
    path = begin(lake, 3, text)
    with pytest.raises(CorruptData, match=r"cannot be read: .*; restore the lake from a copy") as told:
        check_checkpoint(lake, "messages")
    assert str(path) in str(told.value)


def test_a_commit_that_cannot_be_read_may_go(lake: Lake) -> None:
    begin(lake, 0)
    take_in(lake, 0)
    path = end(lake, 0, "")
    with pytest.raises(CorruptData, match=r"remove it and \.0\.crc beside it: Spark does micro-batch 0 again") as told:
        check_checkpoint(lake, "messages")
    assert str(path) in str(told.value)
    path.unlink()
    check_checkpoint(lake, "messages")


def test_a_checkpoint_that_is_gone_or_older_than_its_tables_is_told(lake: Lake) -> None:
    take_in(lake, 5)
    with pytest.raises(CorruptData, match=r"has micro-batch 5 of messages, .* is not there: they belong together"):
        check_checkpoint(lake, "messages")
    begin(lake, 4)
    with pytest.raises(CorruptData, match="ends with 4: they belong together"):
        check_checkpoint(lake, "messages")


def test_a_table_that_is_older_than_its_checkpoint_is_told(lake: Lake) -> None:
    begin(lake, 5)
    end(lake, 5)
    take_in(lake, 5)
    check_checkpoint(lake, "messages")
    take_in(lake, 4, DELIVERIES)
    with pytest.raises(CorruptData, match=r"ends with micro-batch 4 of messages, .* says that 5 is done"):
        check_checkpoint(lake, "messages")
