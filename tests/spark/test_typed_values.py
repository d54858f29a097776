"""Payloads as columns of their own types, through a real Spark: what Arrow says is what Spark takes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from tests.unit.spark.values.avro_schemas import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_SECONDS = 180

EVERY_TYPE = (
    "a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, tags ARRAY<STRING>, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "who STRUCT<name: STRING, seen: TIMESTAMP>, m MAP<STRING, ARRAY<INT>>, price DECIMAL(10,2), day DATE, ok BOOLEAN, "
    "raw BINARY, nothing VOID"
)
NOON = datetime(2024, 5, 6, 12, 0, 0, 0, UTC)

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 3}},
        {"name": "notes", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "sizes", "type": {"type": "map", "values": "double"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}


def test_json_of_every_type_is_a_row_of_every_type(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    payload = {
        "a": 1,
        "b": 2,
        "c": 3,
        "d": 4,
        "e": 1.5,
        "f": 2.5,
        "tags": ["x", None],
        "at": "2024-05-06T14:00:00+02:00",
        "local": "2024-05-06T12:00:00",
        "who": {"name": "Ada", "seen": "2024-05-06T12:00:00"},
        "m": {"k": [1]},
        "price": 1.25,
        "day": "2024-05-06",
        "ok": True,
        "raw": "aGk=",
        "more": 1,
    }
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic)
        for each in (json.dumps(payload).encode(), b"{}", b"no JSON", b'{"d": "4"}'):
            lane.publish(topic, each)

    source = spark.read.format("sealane").options(url=node.url, topic=topic)
    table = source.options(valueFormat="json", valueSchema=EVERY_TYPE).load().orderBy("offset").toArrow()

    full, empty, *corrupt = table["value"].to_pylist()
    assert full == {
        "a": 1,
        "b": 2,
        "c": 3,
        "d": 4,
        "e": 1.5,
        "f": 2.5,
        "tags": ["x", None],
        "at": NOON,
        "local": NOON.replace(tzinfo=None),
        "who": {"name": "Ada", "seen": NOON},
        "m": [("k", [1])],
        "price": Decimal("1.25"),
        "day": date(2024, 5, 6),
        "ok": True,
        "raw": b"hi",
        "nothing": None,
    }
    assert empty == dict.fromkeys(full)
    assert corrupt == [None, None]
    assert table["_corrupt"].to_pylist() == [None, None, b"no JSON", b'{"d": "4"}']


def test_avro_is_read_by_a_stream(spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path) -> None:
    order = {
        "id": 5,
        "state": "PAID",
        "code": b"abc",
        "notes": ["x", None],
        "sizes": {"l": 1.5},
        "at": NOON,
        "day": None,
        "price": Decimal("-1.25"),
    }
    payload = written(ORDER, order)
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic)
        for each in (payload, payload[:-1], b"", payload):
            lane.publish(topic, each)

    stream = spark.readStream.format("sealane").options(url=node.url, topic=topic)
    orders = (
        stream.options(valueFormat="avro", valueSchema=json.dumps(ORDER)).load().select("value", "_corrupt", "offset")
    )
    writing = orders.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query = writing.start(str(tmp_path / "rows"))
    assert query.awaitTermination(DEADLINE_SECONDS), "the query did not end in time"

    table = spark.read.parquet(str(tmp_path / "rows")).orderBy("offset").toArrow()
    expected = {**order, "sizes": [("l", 1.5)]}
    assert table["value"].to_pylist() == [expected, None, None, expected]
    assert table["_corrupt"].to_pylist() == [None, payload[:-1], b"", None]


@pytest.mark.parametrize(
    ("format", "schema", "problem"),
    [
        ("json", "id BIGGINT", "at character 3: 'BIGGINT' is no type that can be read"),
        ("avro", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}', "the union"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_before_there_is_a_job(
    spark: SparkSession, node: NodeProcess, topic: str, format: str, schema: str, problem: str
) -> None:
    source = spark.read.format("sealane").options(url=node.url, topic=topic, valueFormat=format, valueSchema=schema)

    with pytest.raises(Exception, match="option 'valueSchema'") as refusal:
        source.load()

    assert problem in str(refusal.value)
