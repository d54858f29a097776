"""Protobuf and Arrow as rows of their topic's tables: by which version each is read, and numbers that are hashed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed import rows as typed_rows
from sealane.pipeline.typed.definitions import fields_of
from sealane.pipeline.typed.forgetting import Subject
from sealane.pipeline.typed.rows import NO_VALUES, SEVERAL, TopicRows
from sealane.pipeline.typed.versions import TypedVersion, evolved, keep_versions, kept_versions
from sealane.schemas.formats import Definition
from tests.unit.pipeline.test_typed_rows import clean
from tests.unit.schemas.protobuf_files import field, message, schema_of
from tests.unit.schemas.test_arrow_columns import bare, batch, stream
from tests.unit.schemas.test_protobuf_schema import varint

NUMBER = "+49 170 1234567"


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(LakeKeys.open_or_make(tmp_path / "lake.keys"), "shop")


def protobuf(*fields: Any, **rest: Any) -> Definition:
    schema = schema_of(message("M", *fields, **rest))
    return Definition("protobuf", "as its author wrote it", "M", schema.identity.partition(b"\0M")[0])


def arrow(schema: pa.Schema) -> Definition:
    return Definition("arrow", base64.b64encode(schema.serialize().to_pybytes()).decode())


def typed(versions: tuple[TypedVersion, ...], numbers: Numbers, *bodies: bytes) -> list[tuple[Any, ...]]:
    """Version, offset, and the values or why there are none; of Arrow with the number of the row."""
    found = []
    for part in TopicRows(versions, numbers).of(clean(*bodies, format="binary")):
        part.batch.validate(full=True)
        for row in part.batch.to_pylist():
            message = {row.pop(name) for name in ("id", "partition", "created", "key")}
            assert message
            place = (part.version, row.pop("offset"), *([row.pop("_row")] if "_row" in row else []))
            found.append((*place, row.pop("_misfit") or row))
    return sorted(found, key=lambda row: (row[1], str(row)))


ID, PHONE = field("id", 1, "int32"), field("phone", 2, "int64")


def test_protobuf_is_read_by_the_newest_version_that_knows_all_of_it(numbers: Numbers, tmp_path: Path) -> None:
    first = protobuf(ID, PHONE, field("gone", 3, "string"))
    second = protobuf(ID, PHONE, field("city", 4, "string"), reserved=[(3, 4)])
    versions = evolved((), [first, second])
    lake = Lake(tmp_path / "lake")
    keep_versions(lake, "shop/orders", versions)
    assert kept_versions(lake, "shop/orders") == versions
    bodies = (
        b"\x08\x01\x10" + varint(491701234567),
        b"\x08\x02\x1a\x03old",
        b"\x08\x03\x22\x0f+49 170 1234567",
        b"\x08\x04\x1a\x01a\x22\x01b",
    )
    hashed = numbers.hashed("491701234567")
    assert typed(versions, numbers, *bodies) == [
        (1, 0, {"value_id": 1, "phone": hashed, "gone": None, "city": ""}),
        (1, 1, {"value_id": 2, "phone": "0", "gone": "old", "city": None}),
        (1, 2, {"value_id": 3, "phone": "0", "gone": None, "city": numbers.hashed(NUMBER)}),
        (1, 3, {"value_id": 4, "phone": "0", "gone": None, "city": "b"}),
    ]


def test_protobuf_of_another_type_is_in_another_table_and_no_row_is_lost(numbers: Numbers) -> None:
    versions = evolved((), [protobuf(ID), protobuf(field("id", 1, "string")), protobuf(field("id", 1, "uint64"))])
    assert [version.number for version in versions] == [1, 2, 3]
    assert typed(versions, numbers, b"\x08\x01", b"\x0a\x01a", b"\x08" + b"\xff" * 9 + b"\x01", b"\xff") == [
        (3, 0, {"value_id": 1}),
        (2, 1, {"value_id": "a"}),
        (1, 2, {"value_id": -1}),
        (3, 3, NO_VALUES),
    ]


def test_maps_of_any_key_and_bytes_have_their_numbers_hashed(numbers: Numbers) -> None:
    type = pa.struct(
        [
            ("by", pa.map_(pa.int32(), pa.struct([("phone", pa.int64()), ("n", pa.int32())]))),
            ("is", pa.map_(pa.bool_(), pa.utf8())),
            ("mobile", pa.binary()),
            ("data", pa.binary()),
        ]
    )
    schema = pa.schema(list(type))
    row = {
        "by": [(-5, {"phone": 491701234567, "n": 1}), (7, {"phone": 1, "n": None})],
        "is": [(True, NUMBER), (False, "x")],
        "mobile": b"01701234567",
        "data": b"01701234567",
    }
    (found,) = typed(evolved((), [arrow(schema)]), numbers, stream(batch(schema, row)))
    assert found[3] == {
        "by": [(-5, {"phone": None, "n": 1}), (7, {"phone": 1, "n": None})],
        "is": [(True, numbers.hashed(NUMBER)), (False, "x")],
        "mobile": numbers.hashed("01701234567").encode(),
        "data": b"01701234567",
    }
    hashes = pa.record_batch({"key": pa.array([None], pa.binary()), "mobile": pa.array([found[3]["mobile"]])})
    assert Subject(frozenset(), numbers.hashed("01701234567")).rows(hashes).tolist() == [True]


def test_each_row_of_arrow_is_a_row_and_a_few_are_made_at_a_time(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_rows, "ROWS_AT_ONCE", 2)
    schema = pa.schema([("phone", pa.utf8()), ("n", pa.uint8())])
    versions = evolved((), [arrow(schema)])
    assert versions[0].fields_type == pa.struct([("phone", pa.utf8()), ("n", pa.int64())])
    three = batch(schema, *({"phone": "0170 1234567", "n": n} for n in range(3)))
    hashed = numbers.hashed("0170 1234567")
    bodies = (stream(three), stream(three.slice(0, 0)), b"none", bare(three.slice(1, 1)))
    assert typed(versions, numbers, *bodies) == [
        (1, 0, 0, {"phone": hashed, "n": 0}),
        (1, 0, 1, {"phone": hashed, "n": 1}),
        (1, 0, 2, {"phone": hashed, "n": 2}),
        (1, 2, None, NO_VALUES),
        (1, 3, 0, {"phone": hashed, "n": 1}),
    ]


def test_a_stream_is_read_by_the_version_that_knows_most_of_it(numbers: Numbers) -> None:
    both, one = pa.schema([("a", pa.int64()), ("b", pa.int64())]), pa.schema([("a", pa.int64())])
    for order in ([both, one], [one, both]):
        versions = evolved((), map(arrow, order))
        bodies = (stream(batch(both, {"a": 1, "b": 2})), stream(batch(one, {"a": 3})), bare(batch(one, {"a": 4})))
        assert typed(versions, numbers, *bodies) == [
            (1, 0, 0, {"a": 1, "b": 2}),
            (1, 1, 0, {"a": 3, "b": None}),
            (1, 2, 0, {"a": 4, "b": None}),
        ]


def test_a_record_batch_that_two_versions_read_differently_is_not_guessed_at(numbers: Numbers) -> None:
    first, swapped = (pa.schema([(name, pa.int64()) for name in names]) for names in ("ab", "ba"))
    versions = evolved((), [arrow(first), arrow(swapped)])
    bodies = (
        bare(batch(first, {"a": 1, "b": 2})),
        bare(batch(first, {"a": 1, "b": 1})),
        stream(batch(first, {"a": 1, "b": 2})),
    )
    assert typed(versions, numbers, *bodies) == [
        (1, 0, None, SEVERAL),
        (1, 1, 0, {"a": 1, "b": 1}),
        (1, 2, 0, {"a": 1, "b": 2}),
    ]


def test_what_has_no_column_is_left_out_and_a_schema_of_nothing_else_has_no_table() -> None:
    assert fields_of(arrow(pa.schema([("at", pa.time32("s")), ("n", pa.uint8())]))) == pa.struct([("n", pa.int64())])
    assert fields_of(arrow(pa.schema([("at", pa.time32("s"))]))) is None
    assert fields_of(protobuf(field("me", 1, "message", of=".M"))) is None
    deep = pa.int64()
    for _ in range(31):
        deep = pa.list_(deep)
    assert fields_of(arrow(pa.schema([("deep", pa.list_(deep))]))) is None
    assert evolved((), [arrow(pa.schema([("nothing", pa.null())]))]) == ()
