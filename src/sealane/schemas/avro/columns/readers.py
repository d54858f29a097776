"""From a schema that Avro writes to what reads its values. Everything that cannot be read is refused here, by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from sealane.errors import InvalidSchema
from sealane.schemas.avro.columns import decimals
from sealane.schemas.avro.columns.blocks import Array, Map
from sealane.schemas.avro.columns.nesting import Nullable, Record
from sealane.schemas.avro.columns.scalars import BY_LOGICAL_TYPE, BY_NAME, Enum, Fixed, Reader
from sealane.schemas.avro.names import full_name
from sealane.schemas.limits import shortened

NESTING_MAX = 32
"""Types within types of one schema whose values become columns: more than anybody writes, and far from what recursion
can bear."""

_FIXED_BYTES = range(1, 2**31)
_SHOWN_CHARACTERS = 80


def refused(problem: str) -> InvalidSchema:
    return InvalidSchema("avro", shortened(problem))


def parsed(text: str) -> Any:
    """The schema as JSON. Raises `InvalidSchema`."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise refused(f"it is no JSON, as Avro's schemas are: {error}") from None


def record_reader(schema: Any) -> Record:
    """What reads values of the schema, which must be a record. Raises `InvalidSchema`."""
    found = _Names().reader(schema, _Place())
    if not isinstance(found, Record):
        raise refused("its outermost type must be a record, whose fields become columns")
    if not found.fields:
        raise refused("its record has no field")
    return found


class _Place(NamedTuple):
    """Where in a schema something is written."""

    path: tuple[str, ...] = ()
    """The fields that lead there."""
    namespace: str = ""
    depth: int = 0

    def within(self, *steps: str, namespace: str | None = None) -> _Place:
        return _Place((*self.path, *steps), self.namespace if namespace is None else namespace, self.depth + 1)

    def refused(self, problem: str) -> InvalidSchema:
        return refused(f"at {'.'.join(self.path)}: {problem}" if self.path else problem)


class _Names:
    """The named types of a schema, as they are met from left to right."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader | None] = {}

    def reader(self, schema: Any, place: _Place) -> Reader:
        if place.depth > NESTING_MAX:
            raise refused(f"types are within types {place.depth} deep or more, at most {NESTING_MAX} are read")
        match schema:
            case str():
                return BY_NAME[schema] if schema in BY_NAME else self._known(schema, place)
            case list():
                return self._union(schema, place)
            case {"type": "record" | "enum" | "fixed", "name": str()}:
                return self._named(schema, place)
            case {"type": "array", "items": items}:
                return Array(self._item(items, place.within("items")))
            case {"type": "map", "values": values}:
                return Map(self.reader(values, place.within("values")))
            case {"type": "record" | "enum" | "fixed" | "array" | "map"}:
                raise place.refused(f"{_shown(schema)} leaves out what such a type needs")
            case {"type": str(name)} if name in BY_NAME:
                return _logical(schema, name, place)
            case {"type": (dict() | list() | str()) as inner}:
                return self.reader(inner, place.within())
        raise place.refused(f"{_shown(schema)} is no type of Avro")

    def _known(self, name: str, place: _Place) -> Reader:
        full = full_name(name, None, place.namespace)
        if full not in self._readers:
            raise place.refused(f"the type {full!r} is not known, or not defined before it is used")
        found = self._readers[full]
        if found is None:
            raise place.refused(f"the type {full!r} holds itself; recursive types have no columns")
        return found

    def _union(self, branches: list[Any], place: _Place) -> Reader:
        if len(branches) != 2 or branches.count("null") != 1:
            raise place.refused(f"the union {_shown(branches)} is not of null and one other type; others are not read")
        null_place = branches.index("null")
        other = self.reader(branches[1 - null_place], place.within())
        if isinstance(other, Nullable) or other == BY_NAME["null"]:
            raise place.refused("a union holds null twice, or another union")
        return Nullable(null_place, other)

    def _item(self, items: Any, place: _Place) -> Reader:
        found = self.reader(items, place)
        if not found.bytes_min:
            raise place.refused("items that take no byte could be without number in a small payload; they are not read")
        return found

    def _named(self, schema: dict[str, Any], place: _Place) -> Reader:
        given = schema.get("namespace")
        if given is not None and not isinstance(given, str):
            raise place.refused(f"the namespace {_shown(given)} is no text")
        full = full_name(schema["name"], given, place.namespace)
        if full in self._readers:
            raise place.refused(f"the type {full!r} is defined more than once")
        self._readers[full] = None  # Not known yet, while it is being read.
        found: Reader
        if schema["type"] == "record":
            found = self._record(schema, place, full.rpartition(".")[0])
        elif schema["type"] == "enum":
            found = _enum(schema, place)
        else:
            found = _fixed(schema, place)
        self._readers[full] = found
        return found

    def _record(self, schema: dict[str, Any], place: _Place, namespace: str) -> Record:
        written = schema.get("fields")
        if not isinstance(written, list):
            raise place.refused(f"the record {schema['name']!r} has no list of fields")
        fields: dict[str, Reader] = {}
        for field in written:
            match field:
                case {"name": str(name), "type": type} if name not in fields:
                    fields[name] = self.reader(type, place.within(name, namespace=namespace))
                case {"name": str(name), "type": _}:
                    raise place.refused(f"the field {name!r} is there more than once")
                case _:
                    raise place.refused(f"a field has a name and a type, which {_shown(field)} does not")
        return Record(tuple(fields.items()))


def _enum(schema: dict[str, Any], place: _Place) -> Reader:
    match schema.get("symbols"):
        case [*symbols] if symbols and all(isinstance(symbol, str) for symbol in symbols):
            return Enum(tuple(symbols))
    raise place.refused(f"the enum {schema['name']!r} has no list of symbols")


def _fixed(schema: dict[str, Any], place: _Place) -> Reader:
    size = schema.get("size")
    if not isinstance(size, int) or size not in _FIXED_BYTES:
        raise place.refused(f"the fixed type {schema['name']!r} has no size of one byte or more")
    if schema.get("logicalType") != "decimal":
        return Fixed(size)
    if size > decimals.WIDTH_BYTES:
        raise place.refused(f"a decimal of {size} bytes is more than the {decimals.WIDTH_BYTES} that Spark's can have")
    return _decimal(schema, size, place)


def _logical(schema: dict[str, Any], name: str, place: _Place) -> Reader:
    logical = schema.get("logicalType")
    if name == "bytes" and logical == "decimal":
        return _decimal(schema, None, place)
    return BY_LOGICAL_TYPE.get((name, logical), BY_NAME[name]) if isinstance(logical, str) else BY_NAME[name]


def _decimal(schema: dict[str, Any], size: int | None, place: _Place) -> Reader:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        raise place.refused("a decimal has a precision, and its scale is a number")
    if not (1 <= precision <= decimals.DIGITS_MAX and 0 <= scale <= precision):
        allowed = f"the precision is 1 to {decimals.DIGITS_MAX}, the scale 0 to the precision"
        raise place.refused(f"decimal({precision},{scale}) cannot be: {allowed}")
    return decimals.Decimal(precision, scale, size)


def _shown(schema: Any) -> str:
    text = msgspec.json.encode(schema).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
