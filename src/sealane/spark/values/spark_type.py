"""Spark's types and Arrow's: the names of simple ones, and Spark's JSON form of all of them, both ways."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pyarrow as pa

from sealane.schemas.avro.columns.decimals import DIGITS_MAX
from sealane.schemas.avro.columns.scalars import TIMESTAMP as TIMESTAMP
from sealane.schemas.avro.columns.scalars import TIMESTAMP_NTZ as TIMESTAMP_NTZ
from sealane.spark.errors import InvalidOption

NESTING_MAX = 32
"""Types within types of one schema: more than anybody writes, and far from what recursion can bear."""

DECIMAL_DEFAULT = pa.decimal128(10, 0)

_BY_NAME: dict[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.utf8(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
"""As Spark's JSON form names them; the DDL has names of its own beside."""
_NAMES = {type: name for name, type in _BY_NAME.items()}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


def refused(problem: str) -> InvalidOption:
    """The error for a schema that cannot be."""
    return InvalidOption("valueSchema", problem)


def simple_type(name: str) -> pa.DataType | None:
    """The type that Spark's JSON form calls so, if it is a simple one."""
    return _BY_NAME.get(name)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """A decimal as Spark allows it. Raises `InvalidOption`."""
    if not (1 <= precision <= DIGITS_MAX and 0 <= scale <= precision):
        allowed = f"the precision is 1 to {DIGITS_MAX}, the scale 0 to the precision"
        raise refused(f"decimal({precision},{scale}) cannot be: {allowed}")
    return pa.decimal128(precision, scale)


def check_nesting(depth: int) -> None:
    """Raises `InvalidOption` for a type that is within too many others."""
    if depth > NESTING_MAX:
        raise refused(f"types are within types {depth} deep or more, at most {NESTING_MAX} are read")


def struct_type(fields: list[tuple[str, pa.DataType]]) -> pa.StructType:
    """A struct of these fields, all nullable. Raises `InvalidOption` for a name that is there twice."""
    names = [name for name, _ in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise refused(f"the field {twice[0]!r} is there more than once")
    return pa.struct(fields)


def spark_json_of(type: pa.DataType) -> str:
    """The type in Spark's JSON form."""
    return msgspec.json.encode(_spark_of(type)).decode()


def type_of_spark_json(text: str) -> pa.DataType:
    """The type that Spark's JSON form says; that something must not be null is ignored, as Spark's own sources do.

    Raises `InvalidOption`.
    """
    try:
        written = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise refused(f"it begins as Spark's JSON form of a type, but is no JSON: {error}") from None
    return _arrow_of(written, 0)


def _spark_of(type: pa.DataType) -> Any:
    if pa.types.is_struct(type):
        fields = [
            {"name": field.name, "type": _spark_of(field.type), "nullable": True, "metadata": {}} for field in type
        ]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(type):
        return {"type": "array", "elementType": _spark_of(type.value_type), "containsNull": True}
    if pa.types.is_map(type):
        key, value = _spark_of(type.key_type), _spark_of(type.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    return _NAMES[type]


def _arrow_of(written: Any, depth: int) -> pa.DataType:
    check_nesting(depth)
    match written:
        case str():
            return _simple(written)
        case {"type": "struct", "fields": list(fields)}:
            return struct_type([_field(field, depth + 1) for field in fields])
        case {"type": "array", "elementType": element}:
            return pa.list_(_arrow_of(element, depth + 1))
        case {"type": "map", "keyType": key, "valueType": value}:
            return pa.map_(_arrow_of(key, depth + 1), _arrow_of(value, depth + 1))
    raise refused(f"{_shown(written)} is no type that can be read; {KNOWN_TYPES}")


def _simple(name: str) -> pa.DataType:
    if name == "decimal":
        return DECIMAL_DEFAULT
    if decimal := _DECIMAL.fullmatch(name):
        return decimal_type(int(decimal[1]), int(decimal[2]))
    type = simple_type(name)
    if type is None:
        raise refused(f"{name!r} is no type that can be read; {KNOWN_TYPES}")
    return type


def _field(written: Any, depth: int) -> tuple[str, pa.DataType]:
    match written:
        case {"name": str(name), "type": type}:
            return name, _arrow_of(type, depth)
    raise refused(f"a field has a name and a type, which {_shown(written)} does not")


def _shown(written: Any) -> str:
    text = msgspec.json.encode(written).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


_SHOWN_CHARACTERS = 80
KNOWN_TYPES = f"there are {', '.join(_BY_NAME)}, decimal, array, map and struct"
"""For an error about one that is not."""
