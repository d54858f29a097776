"""The clean table on a real node: each message once, no number anywhere, bodies sealed, and poison apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pyarrow.parquet as pq
import pytest

from sealane.errors import CorruptData
from sealane.pipeline.lake.appending import Write, append
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, QUARANTINE, RAW_MESSAGES, TABLES, Lake, Table
from sealane.pipeline.secrets.keeping import keys_of
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps import messages
from sealane.pipeline.steps.messages import take_in_messages
from sealane.security.envelopes import PrivateKey
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

WRITINGS = ("+49 170 1234567", "+491701234567", "0049 170 1234567")
TRACES = (b"1701234567", b"170 1234567")
"""What every writing of the number has in it."""
ORDER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.fixture
def settings(node: NodeProcess, topic: str, tmp_path: Path) -> PipelineSettings:
    return PipelineSettings(lake=tmp_path / "lake", topics=topic, url=node.url, bodies="sealed")


@pytest.fixture
def lake(settings: PipelineSettings) -> Lake:
    return Lake(settings.lake)


@pytest.fixture
def keys(lake: Lake, tmp_path: Path) -> LakeKeys:
    return keys_of(lake, tmp_path / "lake.keys")


def rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in lake.files(table):
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: row["offset"])


def all_bytes(value: Any) -> Iterator[bytes]:
    match value:
        case bytes():
            yield value
        case list() | tuple():
            for each in value:
                yield from all_bytes(each)
        case _:
            yield str(value).encode()


def cells(lake: Lake) -> Iterator[bytes]:
    """Every value of every column of every file."""
    for table in TABLES:
        for row in rows(lake, table):
            yield from all_bytes(list(row.values()))


def test_messages_are_there_once_without_numbers_and_sealed(
    spark: SparkSession, lane: SyncLane, topic: str, settings: PipelineSettings, lake: Lake, keys: LakeKeys
) -> None:
    # A topic that remembers no id but the last one, as every topic forgets them after ten minutes.
    lane.create_topic(topic, id_window_seconds=0)
    first, stranger = uuid4(), PrivateKey.generate()
    order = {"phone": WRITINGS[0], "amount": 9.50, "note": "thanks"}
    text = json.dumps(order).encode()
    lane.publish(topic, text, key=WRITINGS[1].encode(), headers={"from": WRITINGS[2]}, id=first)
    lane.publish(topic, b"hello", key=b"order-2", id=uuid4())
    lane.publish(topic, text, id=first)
    lane.publish(topic, WRITINGS[0].encode())
    lane.publish(topic, b"\xff\x00")
    lane.publish(topic, b'{"number": "secret"}', seal_for=stranger.public)
    assert take_in_messages(spark, lake, settings, keys) == (6, 5, 0)
    lane.publish(topic, b"new", id=uuid4())
    assert lane.publish(topic, b"again", id=first).offset == 7
    assert take_in_messages(spark, lake, settings, keys) == (2, 1, 0)
    assert take_in_messages(spark, lake, settings, keys) == (0, 0, 0)

    found = rows(lake, CLEAN_MESSAGES)
    assert len({row["id"] for row in found}) == len(found) == 6
    assert {row["sealed_by"] for row in found} == {1}
    hashed = keys.hash_number("default", WRITINGS[0])
    bodies = {keys.open("default", row["id"], row["body"]): row["body_format"] for row in found}
    (document,) = (json.loads(body) for body, name in bodies.items() if name == "json")
    assert document == order | {"phone": hashed}
    others = {body: name for body, name in bodies.items() if name in ("text", "binary")}
    assert others == {b"hello": "text", hashed.encode(): "text", b"\xff\x00": "binary", b"new": "text"}
    assert sorted(bodies.values()) == ["binary", "json", "sealed-end-to-end", "text", "text", "text"]
    with pytest.raises(CorruptData):
        LakeKeys.open_or_make(settings.lake.parent / "other.keys").open("default", found[0]["id"], found[0]["body"])

    raw = rows(lake, RAW_MESSAGES)
    assert (raw[0]["key"], dict(raw[0]["headers"])) == (hashed.encode(), {"from": hashed})
    assert json.loads(keys.open("default", raw[0]["id"], raw[0]["payload"])) == order
    assert [row["bytes"] for row in raw][:5] == [len(text), 5, len(text), len(WRITINGS[0]), 2]
    assert not [cell for cell in cells(lake) for trace in TRACES if trace in cell]
    assert not [cell for cell in cells(lake) if b"hello" in cell]
    assert any(hashed.encode() == cell for cell in cells(lake))


def test_poison_is_apart_with_its_reason_and_a_kill_in_between_changes_nothing(
    spark: SparkSession,
    lane: SyncLane,
    topic: str,
    settings: PipelineSettings,
    lake: Lake,
    keys: LakeKeys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane.administer("schema.register", topic=topic, schema=json.dumps(ORDER), validate=False)
    payloads = [b'{"id": 1}', b'{"id": "secret"}', b'{"id": ', b"\xff\xfe", b'{"id": 2}']
    receipts = lane.publish_many(topic, payloads)

    def killed(lake: Lake, table: Table, write: Write, *, writer: str, number: int) -> Any:
        if table == QUARANTINE:
            raise RuntimeError("killed")
        return append(lake, table, write, writer=writer, number=number)

    with monkeypatch.context() as patched:
        patched.setattr(messages, "append", killed)
        with pytest.raises(Exception, match="killed"):
            take_in_messages(spark, lake, settings, keys)
    assert not lake.exists(QUARANTINE)
    assert take_in_messages(spark, lake, settings, keys) == (5, 2, 3)
    lane.publish(topic, b'{"id": 3}')
    assert take_in_messages(spark, lake, settings, keys) == (1, 1, 0)
    assert [row["offset"] for row in rows(lake, RAW_MESSAGES)] == list(range(6))

    assert [row["offset"] for row in rows(lake, CLEAN_MESSAGES)] == [0, 4, 5]
    poison = rows(lake, QUARANTINE)
    assert [row["offset"] for row in poison] == [1, 2, 3]
    assert [UUID(bytes=row["id"]) for row in poison] == [receipt.id for receipt in receipts[1:4]]
    wrong, cut, no_text = (row["reason"] for row in poison)
    assert "$.id: it must be of type integer" in wrong
    assert "it is no JSON" in cut
    assert "it is no" in no_text
    assert not [cell for cell in cells(lake) if b"secret" in cell]
