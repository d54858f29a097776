"""JSON Schemas, and payloads in JSON."""

from __future__ import annotations

from sealane.schemas import Definition
from tests.fuzz.schemas_and_payloads import checked, given, spoiled
from tests.fuzz.target import Target
from tests.fuzz.trees import VALUES, spoil_json

_ORDER = (
    b'{"type": "object", "properties": {"id": {"type": "integer", "minimum": 0}, "city": {"type": "string", '
    b'"pattern": "^[A-Z]", "maxLength": 9}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}}, '
    b'"required": ["id"], "$defs": {"line": {"enum": [1, "a", null]}}}'
)
_WIDER = b'{"anyOf": [{"type": "object"}, {"not": {"type": ["string", "null"]}}], "additionalProperties": true}'
_NUMBER = b'{"type": "number", "multipleOf": 0.01, "exclusiveMaximum": 10}'
_TREE = b'{"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "uniqueItems": true}}}'
_WORDS = (
    *VALUES,
    *("object", "array", "integer", "number", "string", "#", "#/", "#/$defs/line", "^(a+)+$", "[", "date-time"),
    *({"$ref": "#"}, {"type": "integer"}, {"not": {}}, {"if": {}, "then": False}, {"oneOf": [True, True]}),
    *({"patternProperties": {"^a": False}}, {"propertyNames": {"maxLength": 2}}, {"const": {}}, 1e-12, 0.1, True),
)

TARGET = Target(
    "schema_json",
    (
        given(_ORDER, _WIDER, [b'{"id": 1, "city": "Oslo", "lines": [1, "a", null]}', b'{"id": 0}']),
        given(_WIDER, _ORDER, [b"{}", b"1"]),
        given(_NUMBER, b"true", [b"1.25", b"0"]),
        given(_TREE, _TREE, [b"[[], [[]]]"]),
    ),
    checked(lambda data: Definition("json", data.decode("utf-8", "replace"))),
    spoiled(spoil_json(_WORDS), spoil_json()),
)
