"""Typed columns by the schema that a topic has registered, through a real Spark."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from tests.unit.spark.values.avro_schemas import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_SECONDS = 180

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "who": {"type": ["object", "null"], "properties": {"name": {"type": "string"}}},
    },
    "required": ["id"],
}


def avro(*fields: tuple[str, str]) -> Any:
    listed = [{"name": name, "type": type, "default": 0} for name, type in fields]
    return {"type": "record", "name": "Order", "fields": listed}


def source(spark: SparkSession, node: NodeProcess, topic: str, **options: str) -> Any:
    return spark.read.format("sealane").options(url=node.url, topic=topic, valueSchemaFrom="registry", **options)


def test_json_has_the_columns_of_its_topics_schema(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    payload = {"id": 7, "tags": ["x"], "who": {"name": "Ada"}}
    with sealane.connect_sync(node.url) as lane:
        lane.publish(topic, b"before there was a schema")
        lane.administer("schema.register", topic=topic, schema=json.dumps(ORDER))
        lane.publish(topic, json.dumps(payload).encode())

    table = source(spark, node, topic).load().orderBy("offset").toArrow()

    assert table["value"].to_pylist() == [None, payload]
    assert table["_corrupt"].to_pylist() == [b"before there was a schema", None]


def test_avro_of_another_version_is_not_read_with_this_one(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    first, second = avro(("a", "long")), avro(("b", "long"), ("a", "long"))
    old, new = written(first, {"a": 1}), written(second, {"b": 2, "a": 3})
    with sealane.connect_sync(node.url) as lane:
        for schema, payload in ((first, old), (second, new)):
            lane.administer("schema.register", topic=topic, schema=json.dumps(schema), format="avro")
            lane.publish(topic, payload)

    table = source(spark, node, topic).load().orderBy("offset").toArrow()

    assert table["value"].to_pylist() == [None, {"b": 2, "a": 3}]
    assert table["_corrupt"].to_pylist() == [old, None]


def test_protobuf_and_arrow_have_the_columns_of_their_topics_schemas(
    spark: SparkSession, node: NodeProcess, topic: str
) -> None:
    text = 'syntax = "proto3"; message Order { int64 id = 1; map<string, int32> stock = 2; optional string city = 3; }'
    schema = pa.schema([("n", pa.uint8()), ("at", pa.timestamp("ns", "UTC"))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([{"n": 1}, {"n": 255}], schema=schema))
    arrow = f"{topic}-arrow"
    with sealane.connect_sync(node.url) as lane:
        lane.publish(topic, b"before there was a schema")
        lane.administer("schema.register", topic=topic, schema=text, format="protobuf")
        lane.publish(topic, b"\x08\x07\x12\x05\x0a\x01a\x10\x01")
        encoded = base64.b64encode(schema.serialize()).decode()
        lane.administer("schema.register", topic=arrow, schema=encoded, format="arrow")
        lane.publish(arrow, bytes(sink.getvalue()))

    found = source(spark, node, topic).load().orderBy("offset").toArrow()
    assert found["value"].to_pylist() == [None, {"id": 7, "stock": [("a", 1)], "city": None}]
    assert found["_corrupt"].to_pylist() == [b"before there was a schema", None]
    rows = source(spark, node, arrow).load().selectExpr("inline(value.rows)").toArrow()
    assert rows.to_pylist() == [{"n": 1, "at": None}, {"n": 255, "at": None}]


def test_a_stream_takes_the_schema_too(spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.administer("schema.register", topic=topic, schema=json.dumps(ORDER))
        lane.publish(topic, b'{"id": 1}')
    options = {"url": node.url, "topic": topic, "valueSchemaFrom": "registry"}
    stream = spark.readStream.format("sealane").options(**options).load().selectExpr("value.id", "value.tags")
    query = (
        stream.writeStream.format("memory")
        .queryName(f"registered_{topic.replace('-', '_').replace('.', '_')}")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(DEADLINE_SECONDS)
    assert spark.sql(f"SELECT * FROM {query.name}").toArrow().to_pylist() == [{"id": 1, "tags": None}]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"valueSchemaFrom": "elsewhere"}, "'elsewhere' is not known"),
        ({"valueFormat": "json"}, "is given beside valueFormat"),
        ({"topic": "one,two"}, "is for one topic"),
        ({}, "has no schema"),
    ],
)
def test_a_wrong_use_fails_before_any_job(
    spark: SparkSession, node: NodeProcess, topic: str, options: dict[str, str], problem: str
) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic)
    reading = spark.read.format("sealane").options(url=node.url, topic=topic, valueSchemaFrom="registry")
    with pytest.raises(Exception, match=problem):
        reading.options(**options).load()


def test_a_schema_that_has_no_columns_is_refused_at_load(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.administer("schema.register", topic=topic, schema='{"type": "object"}')
    with pytest.raises(Exception, match="it names no `properties`"):
        source(spark, node, topic).load()


def test_rows_are_checked_as_any_other_publish(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.administer("schema.register", topic=topic, schema=json.dumps(ORDER))
    good, bad = spark.createDataFrame([('{"id": 1}',)], ["payload"]), spark.createDataFrame([("{}",)], ["payload"])
    writer = {"url": node.url, "topic": topic}
    good.write.format("sealane").options(**writer).mode("append").save()
    with pytest.raises(Exception, match=r"\$\.id: it is required"):
        bad.write.format("sealane").options(**writer).mode("append").save()
    assert spark.read.format("sealane").options(**writer).load().count() == 1


def test_rows_that_are_sealed_are_checked_before(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    key = sealane.PrivateKey.generate()
    with sealane.connect_sync(node.url) as lane:
        lane.administer("directory.register", public_key=key.public.pem(), name=f"of.{topic}")
        known = lane.administer("schema.register", topic=topic, schema=json.dumps(ORDER))
    writer = {"url": node.url, "topic": topic, "sealFor": f"of.{topic}"}
    rows = spark.createDataFrame([('{"id": 1}',), ('{"id": 2}',)], ["payload"])
    rows.write.format("sealane").options(**writer).mode("append").save()
    bad = spark.createDataFrame([('{"id": "secret"}',)], ["payload"])
    with pytest.raises(Exception, match=r"\$\.id: it must be of type integer"):
        bad.write.format("sealane").options(**writer).mode("append").save()
    with sealane.connect_sync(node.url) as lane:
        batches = [one.batch for one in lane.browse(topic, 0, 0)]
    assert {batch.meta.schema_id for batch in batches} == {known["id"]}
    assert sum(map(len, batches)) == 2
