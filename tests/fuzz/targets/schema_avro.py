"""Avro schemas, and payloads in Avro."""

from __future__ import annotations

from sealane.schemas import Definition
from tests.fuzz.schemas_and_payloads import checked, given, spoiled
from tests.fuzz.target import Target
from tests.fuzz.trees import VALUES, spoil_json

_ORDER = (
    b'{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": '
    b'["null", "string"], "default": null}, {"name": "sizes", "type": {"type": "array", "items": "int"}}]}'
)
_NESTED = (
    b'{"type": "record", "name": "a.N", "fields": [{"name": "next", "type": ["null", "N"]}, {"name": "m", "type": '
    b'{"type": "map", "values": "double"}}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", '
    b'"B"]}}, {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}}]}'
)
_DECIMAL = b'{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}'
_WORDS = (
    *VALUES,
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string", "Order", "a.N", "record", "enum", "map"),
    *(["null", "int"], ["int", "string", "null"], {"type": "array", "items": "null"}, {"type": "map", "values": "N"}),
    *({"type": "fixed", "name": "X", "size": 2**31}, {"type": "fixed", "name": "X", "size": -1}, "timestamp-micros"),
)

TARGET = Target(
    "schema_avro",
    (
        given(_ORDER, b'"string"', [b"\x02\x02\x08Oslo\x04\x02\x04\x00", b"\x02\x00\x00"]),
        given(_NESTED, _NESTED, [b"\x02\x00\x00\x02ab\x02\x02a" + bytes(8) + b"\x00\x00zz"]),
        given(_DECIMAL, _ORDER, [b"\x04\x01\x00"]),
        given(b'["int", "string", {"type": "array", "items": "long"}]', b'"int"', [b"\x00\x02", b"\x02\x02a"]),
        given(b'"string"', b'"bytes"', [b"\x02a"] * 300),
    ),
    checked(lambda data: Definition("avro", data.decode("utf-8", "replace")), describes_itself=False),
    spoiled(spoil_json(_WORDS)),
)
