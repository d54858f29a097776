"""Messages as JSON: the shape that the HTTP door and webhooks share."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import numpy as np
import pytest
from pyroaring import BitMap64

from sealane.message import Batch, BatchMeta, Limits, Row, Stamp, from_payloads, from_rows
from sealane.node.deliveries import Delivery, Part
from sealane.node.message_json import deliveries_json

CREATED_US = 1_735_689_600_000_042
"""The first moment of 2025, and 42 µs."""
STAMP = Stamp(CREATED_US, bytes(range(16)))


def delivery(*parts: Part, attempts: tuple[tuple[BitMap64, int], ...] = ()) -> Delivery:
    return Delivery("default/orders", 3, "billing", 1, 0, parts, attempts)


def of_rows(*rows: Row) -> Batch:
    return from_rows(list(rows), stamp=STAMP, limits=Limits())


def test_a_message_has_the_fields_of_the_http_interface() -> None:
    row = Row(b"paid", b"42", {"region": "eu"}, priority=7, id=UUID(int=0x0102 << 112 | 0xFF))
    (message,) = deliveries_json([delivery(Part(range(9, 10), of_rows(row)))])
    assert message == {
        "id": "01020000-0000-0000-0000-0000000000ff",
        "payload": "paid",
        "key": "42",
        "headers": {"region": "eu"},
        "priority": 7,
        "created": "2025-01-01T00:00:00.000042Z",
        "attempt": 1,
        "partition": 3,
        "offset": 9,
    }


def test_plain_messages_have_every_field_too() -> None:
    batch = from_payloads([b"one", b"two"], stamp=STAMP, limits=Limits())
    first, second = deliveries_json([delivery(Part(range(2), batch))])
    assert first == {
        "id": str(UUID(bytes=batch.ids()[0])),
        "payload": "one",
        "key": None,
        "headers": {},
        "priority": 5,
        "created": "2025-01-01T00:00:00.000042Z",
        "attempt": 1,
        "partition": 3,
        "offset": 0,
    }
    assert (second["id"], second["payload"], second["offset"]) == (str(UUID(bytes=batch.ids()[1])), "two", 1)


def test_what_is_not_utf_8_is_base64_under_another_name() -> None:
    batch = of_rows(Row(b"\xff\x00", b"\xfe"), Row("grün".encode(), b""))
    binary, text = deliveries_json([delivery(Part(range(2), batch))])
    assert base64.b64decode(binary["payload_base64"]) == b"\xff\x00"
    assert base64.b64decode(binary["key_base64"]) == b"\xfe"
    assert "payload" not in binary
    assert "key" not in binary
    assert (text["payload"], text["key"]) == ("grün", "")


@pytest.mark.parametrize("headers", [None, {}])
def test_a_message_without_headers_beside_one_that_has_some(headers: dict[str, str] | None) -> None:
    batch = of_rows(Row(b"a", headers={"x": "1", "y": "2"}), Row(b"b", headers=headers))
    assert [each["headers"] for each in deliveries_json([delivery(Part(range(2), batch))])] == [
        {"x": "1", "y": "2"},
        {},
    ]


def test_attempts_are_those_of_each_message() -> None:
    offsets = np.array([4, 7, 8], dtype=np.uint64)
    batch = from_payloads([b"a", b"b", b"c"], stamp=STAMP, limits=Limits())
    later = ((BitMap64([4, 5]), 2), (BitMap64([8]), 16))
    found = deliveries_json([delivery(Part(offsets, batch), attempts=later)])
    assert [(each["offset"], each["attempt"]) for each in found] == [(4, 2), (7, 1), (8, 16)]


def test_slices_and_several_parts_keep_their_order_and_their_times() -> None:
    later = from_rows([Row(b"%d" % n, b"k") for n in range(5)], stamp=STAMP, limits=Limits()).slice(2, 4)
    plain = from_payloads([b"x"], stamp=Stamp(CREATED_US + 1_000_000, bytes(16)), limits=Limits())
    found = deliveries_json([delivery(Part(range(12, 14), later)), delivery(Part(range(1), plain))])
    assert [each["payload"] for each in found] == ["2", "3", "x"]
    assert found[0]["created"] == "2025-01-01T00:00:00.000042Z"
    moment = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=1, microseconds=42)
    assert datetime.fromisoformat(found[2]["created"]) == moment


def test_what_is_sealed_end_to_end_comes_with_its_envelope() -> None:
    batch = from_payloads([b"\x80sealed"], stamp=STAMP, limits=Limits())
    (message,) = deliveries_json([delivery(Part(range(1), batch.with_meta(BatchMeta(envelope=b"wrapped"))))])
    assert base64.b64decode(message["envelope_base64"]) == b"wrapped"


def test_every_encoder_of_json_takes_it() -> None:
    batch = of_rows(Row(b"\xff", b"\xfe", {"x": "1"}), Row(b"text"))
    found = deliveries_json([delivery(Part(np.array([1, 5], dtype=np.uint64), batch))])
    assert msgspec.json.decode(msgspec.json.encode(found)) == found
    assert json.loads(json.dumps(found)) == found
