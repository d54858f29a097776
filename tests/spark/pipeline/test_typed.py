"""Tables of single topics on a real node: a column for each field, each message once, and schemas that change."""

from __future__ import annotations

import base64
import dataclasses
import functools
import io
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.asking import ask_tables
from sealane.pipeline.bulk.forgetting import forget
from sealane.pipeline.lake.compacting import compact
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, QUARANTINE, Lake, Table, typed_table
from sealane.pipeline.secrets.keeping import keys_of, keys_path
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps import typed
from sealane.pipeline.steps.messages import take_in_messages
from sealane.pipeline.steps.typed import Progress, backfill_typed, type_new
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

NUMBER = "+49 170 1234567"


class Killed(Exception):
    """As a process that is killed here."""


@pytest.fixture
def settings(node: NodeProcess, topic: str, tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(
        lake=tmp_path / "lake",
        topics=topic,
        url=node.url,
        bodies="plain",
        keys=tmp_path / "lake.keys",
    )


@pytest.fixture
def lake(settings: PipelineSettings) -> Lake:
    return Lake(settings.lake)


def register_json(lane: SyncLane, topic: str, compatibility: str = "backward", **properties: str) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": type} for name, type in properties.items()},
        "additionalProperties": False,
    }
    # Poison comes in too: what the table makes of it is looked at.
    lane.administer(
        "schema.register", topic=topic, schema=json.dumps(schema), compatibility=compatibility, validate=False
    )


def publish(lane: SyncLane, topic: str, *documents: dict[str, Any]) -> None:
    lane.publish_many(topic, [json.dumps(each).encode() for each in documents])


def take_in(spark: SparkSession, settings: PipelineSettings) -> int:
    """As a cycle does, less all that other tables need."""
    lake = Lake(settings.lake)
    keys = keys_of(lake, keys_path(settings))
    take_in_messages(spark, lake, settings, keys)
    return type_new(spark, lake, settings, keys)


def rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    found = [row for path in lake.files(table) for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(found, key=lambda row: row["offset"])


def values(lake: Lake, table: Table, *names: str) -> dict[int, tuple[Any, ...]]:
    found = rows(lake, table)
    assert len({row["offset"] for row in found}) == len(found)
    return {row["offset"]: tuple(row.get(name) for name in names) for row in found}


def test_each_message_is_in_its_topics_table_once_and_schemas_may_grow_or_change(
    spark: SparkSession,
    lane: SyncLane,
    topic: str,
    settings: PipelineSettings,
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"default/{topic}"
    first, second = typed_table(name, 1), typed_table(name, 2)
    register_json(lane, topic, id="integer", phone="integer")
    publish(lane, topic, {"id": 1, "phone": 491701234567}, {"id": "poison"}, {"id": 2, "phone": 110})
    assert take_in(spark, settings) == 2
    register_json(lane, topic, id="integer", phone="integer", city="string")
    publish(lane, topic, {"id": 3, "city": NUMBER})
    assert take_in(spark, settings) == 1
    hashed = keys_of(lake, keys_path(settings)).hash_number("default", NUMBER)
    local = keys_of(lake, keys_path(settings)).hash_number("default", "491701234567")
    expected = {0: (1, local, None), 2: (2, "110", None), 3: (3, None, hashed)}
    assert values(lake, first, "value_id", "phone", "city") == expected
    assert [row["offset"] for row in rows(lake, QUARANTINE)] == [1]

    # A micro-batch that is killed after its rows came in, and a schema that the table cannot have.
    register_json(lane, topic, compatibility="none", id="string", city="string")
    publish(lane, topic, {"id": "four", "city": "Ulm"}, {"id": 5, "city": "Bonn"})
    with monkeypatch.context() as patched:
        patched.setattr(Progress, "keep", _killed)
        with pytest.raises(Killed):
            take_in(spark, settings)
    take_in(spark, settings)
    assert values(lake, second, "value_id", "city") == {4: ("four", "Ulm")}
    assert values(lake, first, "value_id", "phone", "city") == expected | {5: (5, None, "Bonn")}

    # Any tool, with nothing of Sealane; and SQL, by names that can be read.
    read = spark.read.option("mergeSchema", "true").parquet(str(lake.path(first)))
    assert {"id", "partition", "offset", "created", "key", "domain", "topic", "date", "city"} <= set(read.columns)
    assert dict(read.dtypes)["value_id"] == "bigint"
    assert read.where("city IS NULL").count() == 2
    view = f"typed_{name}".replace("/", "_").replace("-", "_").lower()
    asked = (
        f"SELECT count(old.city), max(old.value_id), max(new.value_id) FROM {view}_v1 AS old CROSS JOIN {view} AS new"
    )
    assert ask_tables(spark, lake.root, asked)[1] == [[2, 5, "four"]]

    # Files of different columns are put together, and all of it can be made again, by Spark's tasks too.
    assert compact(lake, first, small_files=2) is not None
    assert len(lake.files(first)) == 1
    before = {table.name: rows(lake, table) for table in (first, second)}
    keys = keys_of(lake, keys_path(settings))
    monkeypatch.setattr(typed, "registered_schemas", lambda _: {})
    assert backfill_typed(spark, lake, settings, keys, local_bytes=0) == 5
    assert {table.name: rows(lake, table) for table in (first, second)} == before
    assert type_new(spark, lake, settings, keys) == 0
    monkeypatch.undo()

    report = forget(lake, keys, number=NUMBER)
    assert report.changed > 0
    assert values(lake, first, "value_id", "city")[3] == (None, None)
    assert values(lake, first, "value_id")[0] == (1,)


def _killed(*args: Any) -> None:
    raise Killed


def test_avro_has_columns_and_its_numbers_are_hashed(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings, lake: Lake
) -> None:
    fields = [{"name": "phone", "type": "string"}, {"name": "price", "type": "float"}, {"name": "n", "type": "int"}]
    first = {"type": "record", "name": "Order", "fields": fields}
    wider = first | {"fields": [*fields[:2], {"name": "n", "type": "long"}, {"name": "x", "type": "int", "default": 0}]}
    lane.administer("schema.register", topic=topic, schema=json.dumps(first), format="avro")
    lane.publish(topic, _avro(first, phone=NUMBER, price=0.5, n=7))
    take_in(spark, settings)
    lane.administer("schema.register", topic=topic, schema=json.dumps(wider), format="avro")
    lane.publish(topic, _avro(wider, phone="none", price=1.5, n=2**40, x=3))
    take_in(spark, settings)
    hashed = keys_of(lake, keys_path(settings)).hash_number("default", NUMBER)
    assert values(lake, typed_table(f"default/{topic}", 1), "phone", "price", "n", "x") == {
        0: (hashed, 0.5, 7, None),
        1: ("none", 1.5, 2**40, 3),
    }


ORDER = """
syntax = "proto3";
message Order {{
  string phone = 1;
  message Line {{ double price = 1; repeated string tags = 2; }}
  repeated Line lines = 2;
  oneof paid {{ string card = 3; bool cash = 4; }}
  optional int32 n = 5;
  {more}
}}
"""


def test_protobuf_and_arrow_have_columns_and_poison_stops_neither(
    spark: SparkSession, lane: SyncLane, topic: str, node: NodeProcess, settings: PipelineSettings, lake: Lake
) -> None:
    """One is compiled by the node, and read by its descriptors; each row of the other is a row of its table."""
    arrow, small = f"{topic}-arrow", pa.schema([("phone", pa.int64()), ("n", pa.uint16())])
    large = small.append(pa.field("city", pa.large_utf8()))
    settings = dataclasses.replace(settings, topics=f"{topic},{arrow}")
    register = functools.partial(lane.administer, "schema.register", validate=False, compatibility="forward")
    register(topic=topic, schema=ORDER.format(more=""), format="protobuf")
    register(topic=arrow, schema=base64.b64encode(small.serialize()).decode(), format="arrow")
    phone, price = b"\x0a\x0f" + NUMBER.encode(), b"\x12\x0c\x09" + struct.pack("<d", 1.5) + b"\x12\x01x"
    # The last has a field of another type, and the one before it ends too early.
    lane.publish_many(topic, [phone + price + b"\x20\x01\x28\x00", b"", b"\x0a\x0f", b"\x08\x01"])
    rows_of_arrow: list[dict[str, Any]] = [{"phone": 491701234567, "n": 1}, {"phone": None, "n": 2}]
    lane.publish_many(arrow, [_arrow(small, *rows_of_arrow), b"poison"])
    take_in(spark, settings)
    register(topic=topic, schema=ORDER.format(more="map<int32, string> names = 6;"), format="protobuf")
    register(topic=arrow, schema=base64.b64encode(large.serialize()).decode(), format="arrow")
    lane.publish(topic, b"\x32\x05\x08\x07\x12\x01y")
    lane.publish(arrow, _arrow(large, {"phone": 1, "n": 3, "city": NUMBER}))
    take_in(spark, settings)

    keys = keys_of(lake, keys_path(settings))
    hashed, local = keys.hash_number("default", NUMBER), keys.hash_number("default", "491701234567")
    first = typed_table(f"default/{topic}", 1)
    assert values(lake, first, "phone", "lines", "card", "cash", "n", "names") == {
        0: (hashed, [{"price": 1.5, "tags": ["x"]}], None, True, 0, None),
        1: ("", [], None, None, None, None),
        4: ("", [], None, None, None, [(7, "y")]),
    }
    found = rows(lake, typed_table(f"default/{arrow}", 1))
    assert sorted((row["offset"], row["_row"], row["phone"], row["n"], row.get("city")) for row in found) == [
        (0, 0, local, 1, None),
        (0, 1, None, 2, None),
        (2, 0, "1", 3, hashed),
    ]
    poison = {(row["offset"], row["reason"].partition(":")[0]) for row in rows(lake, QUARANTINE)}
    assert {offset for offset, _ in poison} == {1, 2, 3}
    assert all(reason.startswith("it does not fit the schema at $") for _, reason in poison)

    view = f"typed_default_{arrow}".replace("-", "_").replace(".", "_").lower()
    assert ask_tables(spark, lake.root, f"SELECT sum(n), count(city) FROM {view}")[1] == [[6, 1]]
    # By Spark's tasks as well, which get the descriptors with the job.
    before = {table.name: rows(lake, table) for table in lake.typed_tables()}
    assert backfill_typed(spark, lake, settings, keys, local_bytes=0) == 6
    again = {table.name: rows(lake, table) for table in lake.typed_tables()}
    assert again[f"default/{arrow}/v1"] == [row | {"city": row.get("city")} for row in before[f"default/{arrow}/v1"]]
    # Of a map nobody can tell whether it was there.
    assert [row["names"] for row in again[first.name]] == [[], [], [(7, "y")]]
    assert forget(lake, keys, number=NUMBER).changed > 0
    assert values(lake, first, "phone", "cash")[0] == (None, None)


def _arrow(schema: pa.Schema, *records: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist(list(records), schema=schema))
    return bytes(sink.getvalue())


def _avro(schema: dict[str, Any], **record: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), record)
    return buffer.getvalue()


@pytest.mark.parametrize("bodies", ["sealed", "left-out"])
def test_bodies_that_are_not_in_the_open_have_no_columns_either(
    spark: SparkSession, lane: SyncLane, topic: str, node: NodeProcess, tmp_path: Path, bodies: Any
) -> None:
    settings = PipelineSettings(
        lake=tmp_path / "lake", topics=topic, url=node.url, bodies=bodies, keys=tmp_path / "lake.keys"
    )
    register_json(lane, topic, secret="string")
    publish(lane, topic, {"secret": "words"})
    take_in(spark, settings)
    lake = Lake(settings.lake)
    assert len(rows(lake, CLEAN_MESSAGES)) == 1
    assert lake.typed_tables() == []
    assert not [path for path in lake.root.rglob("*") if path.is_file() and b"words" in path.read_bytes()]
