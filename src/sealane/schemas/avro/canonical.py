"""A schema's fingerprint: CRC-64-AVRO of its Parsing Canonical Form, as the single-object encoding puts before a value.

https://avro.apache.org/docs/1.12.0/specification/#parsing-canonical-form-for-schemas
"""

from __future__ import annotations

import json
from typing import Any

from sealane.schemas.avro.names import full_name

_EMPTY = 0xC15D213AA4D7A795
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def fingerprint(schema: Any) -> int:
    """Of a schema that has been read already, and so is known to be one."""
    found = _EMPTY
    for byte in canonical_form(schema).encode():
        found = (found >> 8) ^ _TABLE[(found ^ byte) & 0xFF]
    return found


def canonical_form(schema: Any) -> str:
    """The schema without what does not matter to how values are written, in the one way to write that."""
    return json.dumps(_canonical(schema, ""), separators=(",", ":"), ensure_ascii=False)


def _canonical(schema: Any, namespace: str) -> Any:
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else full_name(schema, None, namespace)
    if isinstance(schema, list):
        return [_canonical(branch, namespace) for branch in schema]
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _canonical(kind, namespace)
    if kind == "array":
        return {"type": kind, "items": _canonical(schema["items"], namespace)}
    if kind == "map":
        return {"type": kind, "values": _canonical(schema["values"], namespace)}
    if kind not in ("record", "enum", "fixed"):
        return _canonical(kind, namespace)
    name = full_name(schema["name"], schema.get("namespace"), namespace)
    if kind == "enum":
        return {"name": name, "type": kind, "symbols": schema["symbols"]}
    if kind == "fixed":
        return {"name": name, "type": kind, "size": int(schema["size"])}
    inner = name.rpartition(".")[0]
    fields = [{"name": field["name"], "type": _canonical(field["type"], inner)} for field in schema["fields"]]
    return {"name": name, "type": kind, "fields": fields}


def _table() -> tuple[int, ...]:
    found = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (_EMPTY if number & 1 else 0)
        found.append(number)
    return tuple(found)


_TABLE = _table()
