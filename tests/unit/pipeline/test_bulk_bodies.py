"""Work over all bodies of a lake: sealed anew, forgotten; tried first, stopped in between, and done once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.errors import InvalidArgument, KeyUnavailable
from sealane.message.schema import HEADERS_TYPE
from sealane.pipeline.bulk.forgetting import forget
from sealane.pipeline.bulk.resealing import drop_unneeded, reseal
from sealane.pipeline.clean.rows import CLEAN_ROWS, MessageRows
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, RAW_MESSAGES, Lake, Table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.spark.source.rows.columns import MESSAGE_SCHEMA

ANNA, BERT = "+49 170 1234567", "+49 170 7654321"
DOMAINS = ("shop", "bank")


class Killed(BaseException):
    """As a process that is killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def keys(tmp_path: Path) -> LakeKeys:
    return LakeKeys.open_or_make(tmp_path / "lake.keys")


def batch(domain: str, **columns: list[Any]) -> pa.RecordBatch:
    """Messages as the source yields them; what is not given is null."""
    rows = len(columns["payload"])
    given = {
        "id": [bytes([row]) * 16 for row in range(rows)],
        "domain": [domain] * rows,
        "topic": ["orders"] * rows,
        "offset": list(range(rows)),
        "created": [datetime(2026, 1, 31, tzinfo=UTC)] * rows,
    } | columns
    schema = MESSAGE_SCHEMA.append(pa.field("_unopened", pa.utf8()))
    return pa.RecordBatch.from_arrays(
        [pa.array(given.get(name, [None] * rows), schema.field(name).type) for name in schema.names], schema=schema
    )


MESSAGES: dict[str, list[Any]] = {
    "payload": [
        json.dumps({"phone": ANNA}).encode(),
        json.dumps({"phone": BERT}).encode(),
        b"by key",
        b"by header",
        b"ciphertext",
    ],
    "key": [b"order-1", b"order-2", ANNA.encode(), None, None],
    "headers": [None, [("lang", "de")], None, [("from", ANNA)], None],
    "_unopened": [None, None, None, None, "sealed for others"],
}


@pytest.fixture
def filled(lake: Lake, keys: LakeKeys) -> Lake:
    for number, domain in enumerate(DOMAINS):
        rows = batch(domain, **MESSAGES)
        _append(lake, RAW_MESSAGES, MessageRows(keys, "sealed", {}).made_of(rows).raw, domain, number)
        _append(lake, CLEAN_MESSAGES, MessageRows(keys, "sealed", {}).made_of(rows).clean, domain, number)
    return lake


def _append(lake: Lake, table: Table, rows: pa.RecordBatch, domain: str, number: int) -> None:
    def write(staging: Path) -> None:
        place = staging / f"domain={domain}" / "topic=orders" / "date=2026-01-31"
        place.mkdir(parents=True)
        # As Spark writes times.
        pq.write_table(
            pa.Table.from_batches([rows]).drop_columns(["domain", "topic"]),
            place / "part.parquet",
            use_deprecated_int96_timestamps=True,
        )

    append(lake, table, write, writer="test", number=number)


def rows(lake: Lake, table: Table, domain: str = "shop") -> list[dict[str, Any]]:
    (path,) = (path for path in lake.files(table) if f"domain={domain}" in path.parts)
    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def bodies(lake: Lake, keys: LakeKeys, table: Table, column: str) -> list[bytes | None]:
    found = rows(lake, table)
    return [None if row[column] is None else keys.open("shop", row["id"], row[column]) for row in found]


# --- sealing anew -----------------------------------------------------------------------------------------------------


def test_after_a_rotation_everything_is_sealed_by_the_newest_key_and_the_older_one_goes(
    filled: Lake, keys: LakeKeys
) -> None:
    before = bodies(filled, keys, CLEAN_MESSAGES, "body"), bodies(filled, keys, RAW_MESSAGES, "payload")
    assert reseal(filled, keys).found == 0
    keys.rotate()
    assert drop_unneeded(filled, keys) == []
    tried = reseal(filled, keys, dry_run=True)
    assert (tried.found, tried.changed, tried.files_changed) == (20, 0, 0)
    steps: list[tuple[int, int]] = []
    done = reseal(filled, keys, told=lambda *step: steps.append(step))
    assert (done.found, done.changed, done.files_changed) == (20, 20, 4)
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert reseal(filled, keys).found == 0
    assert drop_unneeded(filled, keys) == [1]
    after = bodies(filled, keys, CLEAN_MESSAGES, "body"), bodies(filled, keys, RAW_MESSAGES, "payload")
    assert after == before


def test_times_and_other_columns_stay_as_they_were_written(filled: Lake, keys: LakeKeys) -> None:
    (path, *_) = filled.files(CLEAN_MESSAGES)
    before = pq.ParquetFile(path)
    keys.rotate()
    reseal(filled, keys)
    after = pq.ParquetFile(path)
    assert after.schema.equals(before.schema)
    others = [name for name in CLEAN_ROWS.names if name not in ("domain", "topic", "body", "sealed_by")]
    assert after.read(others).equals(before.read(others))


def test_a_job_that_was_killed_goes_on_where_it_was(
    filled: Lake, keys: LakeKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.rotate()
    replace, calls = Path.replace, 0

    def killed(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Killed
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            reseal(filled, keys)
    assert reseal(filled, keys).files_changed == 2
    assert bodies(filled, keys, CLEAN_MESSAGES, "body")[2] == b"by key"
    assert not list(filled.path(CLEAN_MESSAGES).glob("_staging/*/*"))


def test_a_body_whose_key_is_gone_stops_it_and_stays(filled: Lake, keys: LakeKeys) -> None:
    keys.rotate()
    keys.drop_older()
    before = [path.read_bytes() for path in filled.files(RAW_MESSAGES)]
    with pytest.raises(KeyUnavailable, match="sealed by lake key 1"):
        reseal(filled, keys)
    assert [path.read_bytes() for path in filled.files(RAW_MESSAGES)] == before


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_a_number_is_forgotten_in_every_writing_and_nobody_else_is(filled: Lake, keys: LakeKeys) -> None:
    tried = forget(filled, keys, number="0049 170 1234567", dry_run=True)
    assert (tried.found, tried.changed) == (12, 0)
    done = forget(filled, keys, number="+491701234567")
    assert (done.files, done.rows, done.found, done.changed, done.files_changed) == (4, 20, 12, 12, 4)
    assert done.closed == 2
    for table, column in ((RAW_MESSAGES, "payload"), (CLEAN_MESSAGES, "body")):
        found = rows(filled, table)
        assert [row["offset"] for row in found] == [0, 1, 2, 3, 4]
        content = [(row["key"], row["headers"], row[column] and True, row["sealed_by"]) for row in found]
        gone = (None, None, None, None)
        assert content == [gone, (b"order-2", [("lang", "de")], True, 1), gone, gone, (None, None, True, 1)]
    assert forget(filled, keys, number=ANNA).found == 0
    assert forget(filled, keys, number=BERT, dry_run=True).found == 4


def test_a_key_is_forgotten_in_the_domain_that_was_named(filled: Lake, keys: LakeKeys) -> None:
    assert forget(filled, keys, key=b"order-1", domain="bank").found == 2
    assert rows(filled, CLEAN_MESSAGES)[0]["key"] == b"order-1"
    assert rows(filled, CLEAN_MESSAGES, "bank")[0]["key"] is None
    assert forget(filled, keys, key=ANNA.encode()).found == 4


def test_what_cannot_be_asked_is_told(filled: Lake, keys: LakeKeys) -> None:
    with pytest.raises(InvalidArgument, match="one of them"):
        forget(filled, keys)
    with pytest.raises(InvalidArgument, match="no phone number"):
        forget(filled, keys, number="Anna")


# --- how bodies are kept ----------------------------------------------------------------------------------------------


def test_bodies_are_left_out_or_plain_where_that_was_asked_for(keys: LakeKeys) -> None:
    left_out = MessageRows(keys, "left-out", {}).made_of(batch("shop", **MESSAGES)).clean
    assert left_out["body"].null_count == left_out["sealed_by"].null_count == len(left_out)
    assert left_out["body_format"].to_pylist() == ["json", "json", "text", "text", "sealed-end-to-end"]
    plain = MessageRows(keys, "plain", {}).made_of(batch("shop", **MESSAGES)).clean
    assert json.loads(plain["body"][0].as_py()) == {"phone": keys.hash_number("shop", ANNA)}
    assert plain["sealed_by"].null_count == len(plain)
    assert plain["headers"].type == HEADERS_TYPE
    raw = MessageRows(keys, "plain", {}).made_of(batch("shop", **MESSAGES)).raw
    assert raw["payload"].to_pylist() == MESSAGES["payload"]
    assert raw["key"][2].as_py() == keys.hash_number("shop", ANNA).encode()
