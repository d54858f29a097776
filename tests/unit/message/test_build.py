from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import SCHEMA, Limits, Row, Stamp, decode, encode, from_payloads, from_rows
from tests.unit.message.strategies import LIMITS, STAMP, given_rows, rows_of, same_message, stamps

SMALL = Limits(
    payload_bytes_max=10, batch_bytes_max=400, batch_messages_max=5, headers_max=2, header_bytes_max=6, key_bytes_max=3
)


@given(given_rows(), stamps)
def test_rows_come_back_as_they_went_in(rows: list[Row], stamp: Stamp) -> None:
    batch = from_rows(rows, stamp, limits=LIMITS)
    assert batch.records.schema.equals(SCHEMA)
    assert batch.meta.given_ids == (rows[0].id is not None)
    for limits in (LIMITS, None):
        decoded = decode(encode(batch), limits=limits)
        assert decoded == batch
        assert decoded.traits == batch.traits
        ids = [row.id for row in rows] if batch.meta.given_ids else batch.ids()
        expected = [same_message(row)._replace(id=id_) for row, id_ in zip(rows, ids, strict=True)]
        assert rows_of(decoded) == expected
        assert decoded.records.column("created").cast("int64").unique().to_pylist() == [stamp.created_us]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_payloads_share_everything_that_is_said_once(count: int) -> None:
    said: dict[str, Any] = {
        "key": b"k",
        "headers": {"region": "eu", "kind": "é"},
        "priority": 7,
        "expires_us": 20,
        "deliver_at_us": 10,
    }
    payloads = [b"%d" % i for i in range(count)]
    batch = from_payloads(payloads, STAMP, limits=LIMITS, **said)
    assert rows_of(batch) == [Row(p, id=i, **said) for p, i in zip(payloads, batch.ids(), strict=True)]
    assert batch.payloads() == payloads
    assert decode(encode(batch), limits=LIMITS) == batch


@pytest.mark.parametrize("count", [1, 3])
def test_payloads_may_be_any_bytes(count: int) -> None:
    payloads: list[Any] = [b"a", bytearray(b"b"), memoryview(b"cc")][-count:]
    assert from_payloads(payloads, STAMP, limits=LIMITS).payloads() == [bytes(payload) for payload in payloads]


@pytest.mark.parametrize("payloads", [["a"], [b"a", "b"], [None], [b"a", None], [5], [b"a", 5], "text", b"bytes"])
def test_payloads_that_are_not_bytes_are_refused(payloads: Any) -> None:
    with pytest.raises(InvalidMessage) as caught:
        from_payloads(payloads, STAMP, limits=LIMITS)
    assert caught.value.field == "payload"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "text"),
        ("headers", [("a", "b")]),
        ("headers", {"a": 1}),
        ("headers", {1: "a"}),
        ("headers", {"a": "\ud800"}),
        ("priority", 0),
        ("priority", 11),
        ("priority", True),
        ("priority", 6.0),
        ("priority", "5"),
        ("expires_us", -1),
        ("expires_us", 1.5),
        ("deliver_at_us", 253_402_300_800_000_000),
        ("id", "no uuid"),
        ("id", b"short"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused_by_name(field: str, value: Any) -> None:
    rows = [Row(b"a", id=bytes(16)), Row(b"b", **{"id": bytes(16), field: value})]
    with pytest.raises(InvalidMessage) as caught:
        from_rows(rows, STAMP, limits=LIMITS)
    assert caught.value.field == field.removesuffix("_us")
    if field != "id":
        with pytest.raises(InvalidMessage) as caught:
            from_payloads([b"a"], STAMP, limits=LIMITS, **{field: value})
        assert caught.value.field == field.removesuffix("_us")


@pytest.mark.parametrize(
    ("row", "field", "limit", "value"),
    [
        (Row(b"x" * 11), "payload", 10, 11),
        (Row(b"", key=b"1234"), "key", 3, 4),
        (Row(b"", headers={"a": "", "b": "", "c": ""}), "headers", 2, 3),
        (Row(b"", headers={"abc": "defg"}), "header", 6, 7),
        (Row(b"", headers={"é": "ééé"}), "header", 6, 8),
    ],
)
def test_what_exceeds_a_limit_is_refused_with_field_limit_and_value(
    row: Row, field: str, limit: int, value: int
) -> None:
    for rows in ([row], [Row(b""), row]):
        with pytest.raises(LimitExceeded) as caught:
            from_rows(rows, STAMP, limits=SMALL)
        assert (caught.value.field, caught.value.limit, caught.value.value) == (field, limit, value)
        assert "limits." in str(caught.value)
    with pytest.raises(LimitExceeded) as caught:
        from_payloads([row.payload, b""], STAMP, limits=SMALL, key=row.key, headers=row.headers)
    assert caught.value.field == field


def test_what_is_just_within_every_limit_is_taken() -> None:
    row = Row(b"x" * 10, key=b"123", headers={"abc": "def", "": ""})
    batch = from_rows([row] * 4, STAMP, limits=SMALL)
    assert decode(encode(batch), limits=SMALL) == batch
    exact = replace(SMALL, batch_bytes_max=batch.nbytes, batch_messages_max=4)
    assert from_rows([row] * 4, STAMP, limits=exact) == batch
    assert decode(encode(batch), limits=exact) == batch


def test_a_batch_of_too_many_bytes_is_refused() -> None:
    batch = from_payloads([b"x" * 10] * 4, STAMP, limits=SMALL)
    tight = replace(SMALL, batch_bytes_max=batch.nbytes - 1)
    for build in (
        lambda: from_payloads([b"x" * 10] * 4, STAMP, limits=tight),
        lambda: from_rows([Row(b"x" * 10)] * 4, STAMP, limits=tight),
        lambda: decode(encode(batch), limits=tight),
    ):
        with pytest.raises(LimitExceeded) as caught:
            build()
        assert (caught.value.field, caught.value.limit) == ("batch", batch.nbytes - 1)
        assert caught.value.value == batch.nbytes


def test_a_batch_of_too_many_messages_is_refused() -> None:
    batch = from_payloads([b""] * 6, STAMP, limits=LIMITS)
    for build in (
        lambda: from_payloads([b""] * 6, STAMP, limits=SMALL),
        lambda: from_rows([Row(b"")] * 6, STAMP, limits=SMALL),
        lambda: decode(encode(batch), limits=SMALL),
    ):
        with pytest.raises(LimitExceeded, match="6 messages, the limit is 5"):
            build()


def test_a_batch_without_messages_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="no messages"):
        from_payloads([], STAMP, limits=LIMITS)
    with pytest.raises(InvalidBatch, match="no messages"):
        from_rows([], STAMP, limits=LIMITS)


def test_ids_are_given_for_all_messages_of_a_batch_or_for_none() -> None:
    value = uuid.UUID("0199c1a0-4f00-7abc-8def-0123456789ab")
    batch = from_rows([Row(b"a", id=value), Row(b"b", id=str(value))], STAMP, limits=LIMITS)
    assert batch.meta.given_ids
    assert batch.ids() == [value.bytes, value.bytes]
    with pytest.raises(InvalidMessage, match="missing in 1 of 2"):
        from_rows([Row(b"a", id=value), Row(b"b")], STAMP, limits=LIMITS)


def test_a_batch_larger_than_any_before_still_has_its_shared_columns() -> None:
    batch = from_payloads([b""] * 70_000, STAMP, limits=LIMITS)
    assert batch.records.column("headers").null_count == 70_000
    assert batch.records.column("priority").unique().to_pylist() == [5]
    batch.records.validate(full=True)
