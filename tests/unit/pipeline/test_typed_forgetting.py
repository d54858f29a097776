"""Forgetting somebody where topics have tables of their own: found by a value, a key, a header, or in Avro."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.message.schema import HEADERS_TYPE
from sealane.pipeline.bulk import forgetting, rewriting
from sealane.pipeline.bulk.forgetting import forget
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, Lake, Table, typed_table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed.files import TypeFiles
from sealane.pipeline.typed.versions import evolved, keep_versions
from sealane.schemas.formats import Definition

ANNA = "+49 170 1234567"
ORDERS, CALLS = "shop/orders", "shop/calls"
JSON = Definition(
    "json",
    json.dumps({"type": "object", "properties": {"phones": {"type": "array", "items": {"type": "string"}}, "any": {}}}),
)
AVRO = Definition(
    "avro",
    json.dumps(
        {"type": "record", "name": "Call", "fields": [{"name": name, "type": "string"} for name in ("kind", "to")]}
    ),
)


class Killed(BaseException):
    """As a process that is killed here."""


@pytest.fixture
def keys(tmp_path: Path) -> LakeKeys:
    return LakeKeys.open_or_make(tmp_path / "lake.keys")


@pytest.fixture
def hashed(keys: LakeKeys) -> str:
    return Numbers(keys, "shop").hashed(ANNA)


@pytest.fixture
def lake(tmp_path: Path, keys: LakeKeys, hashed: str) -> Lake:
    """Orders 0 to 4: by a value, by the key, by a header, by a field without a column, about nobody. A call to Anna and
    one to nobody.
    """
    lake = Lake(tmp_path / "lake")
    bodies = [{"phones": ["x", hashed]}, {}, {"phones": ["y"]}, {"any": hashed}, {"phones": ["z"]}]
    message_keys = [None, hashed.encode(), None, None, b"order-5"]
    headers: list[Any] = [None, None, [("from", hashed)], None, None]
    _fill(lake, keys, ORDERS, JSON, [json.dumps(body).encode() for body in bodies], message_keys, headers)
    _fill(lake, keys, CALLS, AVRO, [_avro(ANNA), _avro("nobody")], [None, None], [None, None])
    return lake


def _avro(number: str) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(AVRO.text)), {"kind": "voice", "to": number})
    return buffer.getvalue()


def _fill(
    lake: Lake,
    keys: LakeKeys,
    topic: str,
    schema: Definition,
    bodies: list[bytes],
    message_keys: list[bytes | None],
    headers: list[Any],
) -> None:
    count = len(bodies)
    rows = pa.table(
        {
            "id": pa.array([b"%s-%d" % (topic.encode(), row) for row in range(count)]),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "created": pa.array([datetime(2026, 1, 31, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")),
            "key": pa.array(message_keys, pa.binary()),
            "headers": pa.array(headers, HEADERS_TYPE),
            "body": pa.array(bodies, pa.binary()),
            "body_format": pa.array([schema.format if schema.format == "json" else "binary"] * count),
            "sealed_by": pa.array([None] * count, pa.int32()),
        }
    )
    domain, _, name = topic.partition("/")
    place = f"domain={domain}/topic={name}/date=2026-01-31"

    def write(staging: Path) -> None:
        (staging / place).mkdir(parents=True)
        pq.write_table(rows, staging / place / "part-0.parquet")

    append(lake, CLEAN_MESSAGES, write, writer=f"of-{name}", number=0)
    versions = evolved((), [schema])
    keep_versions(lake, topic, versions)
    work = lake.root / "work"
    (path,) = (path for path in lake.files(CLEAN_MESSAGES) if f"topic={name}" in path.parts)
    assert TypeFiles(lake.root, work, {topic: versions}, keys).make(path) == count

    def move(staging: Path) -> None:
        staging.parent.mkdir(parents=True)
        (work / typed_table(topic, 1).name).rename(staging)

    append(lake, typed_table(topic, 1), move, writer="clean", number=0)


def left(lake: Lake, table: Table, *names: str) -> dict[int, list[Any]]:
    """By offset, what the rows have."""
    found = {}
    for path in lake.files(table):
        for row in pq.ParquetFile(path).read().to_pylist():
            found[row["offset"]] = [row[name] for name in names]
    return found


def orders(lake: Lake) -> dict[int, list[Any]]:
    return left(lake, typed_table(ORDERS, 1), "key", "phones")


def calls(lake: Lake) -> dict[int, list[Any]]:
    return left(lake, typed_table(CALLS, 1), "to")


def test_a_number_is_forgotten_wherever_a_message_had_it(lake: Lake, keys: LakeKeys, hashed: str) -> None:
    assert orders(lake)[0] == [None, ["x", hashed]]
    assert calls(lake) == {0: [hashed], 1: ["nobody"]}
    tried = forget(lake, keys, number=ANNA, dry_run=True)
    assert (tried.changed, calls(lake)[0]) == (0, [hashed])
    done = forget(lake, keys, number=ANNA)
    assert done.found == tried.found
    nothing = [None, None]
    assert orders(lake) == {0: nothing, 1: nothing, 2: nothing, 3: nothing, 4: [b"order-5", ["z"]]}
    assert calls(lake) == {0: [None], 1: ["nobody"]}
    # The clean table has forgotten the call too: its column in the other one told.
    bodies = [body for path in lake.files(CLEAN_MESSAGES) for body in pq.ParquetFile(path).read()["body"].to_pylist()]
    assert sorted(filter(None, bodies)) == sorted([_avro("nobody"), b'{"phones": ["z"]}'])
    again = forget(lake, keys, number=ANNA)
    assert (again.found, again.changed) == (0, 0)


def test_a_key_is_forgotten(lake: Lake, keys: LakeKeys) -> None:
    forget(lake, keys, key=b"order-5", domain="shop")
    assert orders(lake)[4] == [None, None]
    assert orders(lake)[2] == [None, ["y"]]


@pytest.mark.parametrize("after", range(4))
def test_killed_after_any_file_another_run_finds_the_rest(
    lake: Lake, keys: LakeKeys, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    from sealane.pipeline.typed import forgetting as typed_forgetting

    rewrite, done = rewriting.rewrite, 0

    def killed(*args: Any, **named: Any) -> None:
        nonlocal done
        if done == after:
            raise Killed
        done += 1
        rewrite(*args, **named)

    with monkeypatch.context() as patched:
        for module in (forgetting, typed_forgetting):
            patched.setattr(module, "rewrite", killed)
        with pytest.raises(Killed):
            forget(lake, keys, number=ANNA)
    forget(lake, keys, number=ANNA)
    assert [row for row, has in orders(lake).items() if any(has)] == [4]
    assert [row for row, has in calls(lake).items() if any(has)] == [1]
    bodies = [body for path in lake.files(CLEAN_MESSAGES) for body in pq.ParquetFile(path).read()["body"].to_pylist()]
    assert len([body for body in bodies if body is not None]) == 2
