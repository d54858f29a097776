"""Errors across the wire are the same errors at the other end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sealane.errors import (
    IncompatibleSchema,
    InvalidSchema,
    MissingExtra,
    SchemaMismatch,
    SchemaNotFound,
    SealaneError,
    TopicNotFound,
)
from sealane.wire.faults import error_of, fault_of


@pytest.mark.parametrize(
    "error",
    [
        SchemaMismatch("default/orders", 3, 7, "$.lines[1].price", "it must be of type number"),
        IncompatibleSchema("default/orders", "full", ["$.a: one", "$.b: other"]),
        IncompatibleSchema("default/orders", "full", []),
        InvalidSchema("avro", "it is none"),
        SchemaNotFound("default/orders", "register one"),
        MissingExtra("JSON Schemas", "jsonschema-rs", "server"),
    ],
)
def test_an_error_keeps_its_class_its_text_and_its_fields(error: SealaneError) -> None:
    code, text, fields = msgspec.msgpack.decode(msgspec.msgpack.encode(fault_of(error)))
    same = error_of(code, text, fields)
    assert (type(same), str(same), vars(same)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("fields", [{"args": 5}, {"with_traceback": "x"}, {"cause": ["invalid-name", "no", {1: 2}]}])
def test_what_no_error_has_for_a_field_changes_nothing(fields: dict[str, Any]) -> None:
    error = error_of("topic-not-found", "it is gone", fields)
    assert (type(error), str(error), vars(error)) == (TopicNotFound, "it is gone", {})


def test_what_a_program_could_not_use_stays_at_home() -> None:
    error = InvalidSchema("avro", "it is none")
    error.secret = (b"bytes", object())  # type: ignore[attr-defined]
    assert set(fault_of(error)[2]) == {"format", "problem"}
