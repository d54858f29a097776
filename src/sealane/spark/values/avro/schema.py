"""From a schema that Avro writes to what reads its values. Everything that cannot be read is refused here, by name."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.spark.errors import InvalidOption
from sealane.spark.values.avro import decimals
from sealane.spark.values.avro.names import full_name
from sealane.spark.values.avro.nesting import Array, Map, Nullable, Record
from sealane.spark.values.avro.scalars import BY_LOGICAL_TYPE, BY_NAME, Enum, Fixed, Reader
from sealane.spark.values.spark_type import decimal_type, refused

AVRO_NESTING_MAX = 32
"""Types within types of one schema, as with the DDL."""


def parsed(text: str) -> Any:
    """The schema as JSON. Raises `InvalidOption`."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise refused(f"it is no JSON, as Avro's schemas are: {error}") from None


def record_reader(schema: Any) -> Record:
    """What reads values of the schema, which must be a record. Raises `InvalidOption`."""
    found = _Names().reader(schema, "", ())
    if not isinstance(found, Record):
        raise refused("its outermost type must be a record, whose fields become columns")
    if not found.fields:
        raise refused("its record has no field")
    return found


class _Names:
    """The named types of a schema, as they are met from left to right."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader | None] = {}

    def reader(self, schema: Any, namespace: str, path: tuple[str, ...]) -> Reader:
        """`path` says where in the schema this is, for errors."""
        if len(path) > AVRO_NESTING_MAX:
            raise _refused(path, f"types are within types {len(path)} deep, at most {AVRO_NESTING_MAX} are read")
        match schema:
            case str():
                return BY_NAME[schema] if schema in BY_NAME else self._known(schema, namespace, path)
            case list():
                return self._union(schema, namespace, path)
            case {"type": "record" | "enum" | "fixed", "name": str()}:
                return self._named(schema, namespace, path)
            case {"type": "array", "items": items}:
                return Array(self._repeated(items, namespace, (*path, "items")))
            case {"type": "map", "values": values}:
                return Map(self.reader(values, namespace, (*path, "values")))
            case {"type": str(name)} if name in BY_NAME:
                return _logical(schema, name, path)
            case {"type": (dict() | list() | str()) as inner} if inner not in _STRUCTURED:
                return self.reader(inner, namespace, path)
        raise _refused(path, f"{_shown(schema)} is no type of Avro")

    def _known(self, name: str, namespace: str, path: tuple[str, ...]) -> Reader:
        full = full_name(name, None, namespace)
        if full not in self._readers:
            raise _refused(path, f"the type {full!r} is not defined before it is used")
        found = self._readers[full]
        if found is None:
            raise _refused(path, f"the type {full!r} holds itself; recursive types have no columns")
        return found

    def _union(self, branches: list[Any], namespace: str, path: tuple[str, ...]) -> Reader:
        if len(branches) != 2 or branches.count("null") != 1:
            raise _refused(path, f"the union {_shown(branches)} is not of null and one other type; others are not read")
        null_place = branches.index("null")
        other = self.reader(branches[1 - null_place], namespace, path)
        if isinstance(other, Nullable) or other == BY_NAME["null"]:
            raise _refused(path, "a union holds null twice, or another union")
        return Nullable(null_place, other)

    def _repeated(self, items: Any, namespace: str, path: tuple[str, ...]) -> Reader:
        found = self.reader(items, namespace, path)
        if not found.bytes_min:
            raise _refused(
                path, "items that take no byte could be without number in a small payload; they are not read"
            )
        return found

    def _named(self, schema: dict[str, Any], namespace: str, path: tuple[str, ...]) -> Reader:
        given = schema.get("namespace")
        if given is not None and not isinstance(given, str):
            raise _refused(path, f"the namespace {_shown(given)} is no text")
        full = full_name(schema["name"], given, namespace)
        if full in self._readers:
            raise _refused(path, f"the type {full!r} is defined more than once")
        self._readers[full] = None  # Not known yet, while it is being read.
        found: Reader
        if schema["type"] == "record":
            found = self._record(schema, full.rpartition(".")[0], path)
        elif schema["type"] == "enum":
            found = _enum(schema, path)
        else:
            found = _fixed(schema, path)
        self._readers[full] = found
        return found

    def _record(self, schema: dict[str, Any], namespace: str, path: tuple[str, ...]) -> Record:
        fields: dict[str, Reader] = {}
        match schema:
            case {"fields": list(written)}:
                for field in written:
                    match field:
                        case {"name": str(name), "type": type}:
                            if name in fields:
                                raise _refused(path, f"the field {name!r} is there more than once")
                            fields[name] = self.reader(type, namespace, (*path, name))
                        case _:
                            raise _refused(path, f"a field has a name and a type, which {_shown(field)} does not")
                return Record(tuple(fields.items()))
        raise _refused(path, f"the record {schema['name']!r} has no list of fields")


_STRUCTURED = ("record", "enum", "fixed", "array", "map")


def _enum(schema: dict[str, Any], path: tuple[str, ...]) -> Reader:
    match schema.get("symbols"):
        case [*symbols] if symbols and all(isinstance(symbol, str) for symbol in symbols):
            return Enum(tuple(symbols))
    raise _refused(path, f"the enum {schema['name']!r} has no list of symbols")


def _fixed(schema: dict[str, Any], path: tuple[str, ...]) -> Reader:
    size = schema.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size < 2**31:
        raise _refused(path, f"the fixed type {schema['name']!r} has no size of one byte or more")
    if schema.get("logicalType") != "decimal":
        return Fixed(size)
    if size > decimals.WIDTH_BYTES:
        raise _refused(path, f"a decimal of {size} bytes is more than the {decimals.WIDTH_BYTES} that Spark's can have")
    return _decimal(schema, size, path)


def _logical(schema: dict[str, Any], name: str, path: tuple[str, ...]) -> Reader:
    logical = schema.get("logicalType")
    if name == "bytes" and logical == "decimal":
        return _decimal(schema, None, path)
    if isinstance(logical, str):
        return BY_LOGICAL_TYPE.get((name, logical), BY_NAME[name])
    return BY_NAME[name]


def _decimal(schema: dict[str, Any], size: int | None, path: tuple[str, ...]) -> Reader:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        raise _refused(path, "a decimal has a precision, and its scale is a number")
    decimal_type(precision, scale)
    return decimals.Decimal(precision, scale, size)


_SHOWN_CHARACTERS = 80


def _shown(schema: Any) -> str:
    text = msgspec.json.encode(schema).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _refused(path: tuple[str, ...], problem: str) -> InvalidOption:
    return refused(f"at {'.'.join(path)}: {problem}" if path else problem)
