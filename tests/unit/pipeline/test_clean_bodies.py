"""What becomes of a payload: cleaned JSON, text and bytes as they are, or a reason that tells nothing of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.clean.bodies import clean_body, document_of
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.schemas.formats import Definition
from sealane.schemas.json.depth import JSON_DEPTH_MAX

NUMBERS = Numbers(LakeKeys({1: bytes(32)}, bytes(32), Path("lake.keys")), "shop")
CLOSED = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
OPEN = {"type": "object", "required": ["name"]}
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def schema(*documents: object, format: str = "json") -> TopicSchema:
    return TopicSchema(tuple(Definition(format, json.dumps(each)) for each in documents))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("payload", "format", "body"),
    [
        (b' {"price": 1.10, "count": 123456789012345678901234567890} ', "json", None),
        (b'{"a": 1, "a": 2}', "json", b'{"a":2}'),
        (b"[1, 2]", "json", b"[1,2]"),
        (b'{"cut": ', "text", b'{"cut": '),
        (b"hello", "text", b"hello"),
        (b"42", "text", b"42"),
        (b"", "text", b""),
        (b"\xff{", "binary", b"\xff{"),
    ],
)
def test_without_a_schema_a_body_is_what_it_looks_like(payload: bytes, format: str, body: bytes | None) -> None:
    found = clean_body(payload, NUMBERS, None)
    assert (found.format, found.reason) == (format, None)
    assert found.body == (body if body is not None else payload.replace(b" ", b""))


def test_a_number_under_a_name_that_is_there_twice_does_not_stay() -> None:
    found = clean_body(b'{"phone": "+491701234567", "phone": "none"}', NUMBERS, None)
    assert found.body == b'{"phone":"none"}'


def test_what_is_sealed_end_to_end_is_kept_as_it_is_whatever_the_schema_says() -> None:
    assert clean_body(b"\x00", NUMBERS, schema(CLOSED), is_sealed=True) == ("sealed-end-to-end", b"\x00", None)


def test_what_fits_any_version_of_the_schema_is_clean() -> None:
    both = schema(CLOSED, OPEN)
    assert clean_body(b'{"id": 1}', NUMBERS, both).format == "json"
    assert clean_body(b'{"name": "x"}', NUMBERS, both).format == "json"
    assert clean_body(b'{"id": "x"}', NUMBERS, both).reason is not None


@pytest.mark.parametrize("payload", [b"\xff", b"{", b"[]", b'{"+491701234567": 1}', b'{"id": "0170-1234567"}', b""])
def test_a_reason_says_nothing_of_what_is_there(payload: bytes) -> None:
    found = clean_body(payload, NUMBERS, schema(CLOSED))
    assert found.body is None
    assert found.reason is not None
    assert "1234567" not in found.reason


def test_avro_is_checked_and_stays_as_it_is() -> None:
    avro = schema(AVRO, format="avro")
    assert clean_body(b"\x02", NUMBERS, avro) == ("binary", b"\x02", None)
    assert clean_body(b"\x02\x02", NUMBERS, avro).reason is not None


def test_json_that_is_nested_without_end_cannot_be_cleaned() -> None:
    deep = JSON_DEPTH_MAX + 1
    assert "nested" in (clean_body(b"[" * deep + b"]" * deep, NUMBERS, None).reason or "")
    assert clean_body(b"[" * JSON_DEPTH_MAX + b"]" * JSON_DEPTH_MAX, NUMBERS, None).format == "json"


@given(st.binary(max_size=80))
def test_any_bytes_become_a_body_or_a_reason(payload: bytes) -> None:
    for kind in (None, schema(CLOSED)):
        found = clean_body(payload, NUMBERS, kind)
        assert (found.body is None) == (found.reason is not None) == (found.format is None)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc "),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abc"), inner),
)


@given(st.lists(documents))
def test_a_document_without_numbers_stays_the_same(document: list[object]) -> None:
    found = clean_body(json.dumps(document).encode(), NUMBERS, None)
    assert found.body is not None
    assert document_of(found.body) == document
