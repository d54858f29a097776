"""What JSON must look like to be of a type: for the decoder, the type of Python values that it checks and makes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Annotated, Any, TypedDict, cast

import msgspec
import numpy as np
import pyarrow as pa

from sealane.spark.values.spark_type import refused
from sealane.spark.values.timestamps import Bools, timestamps_of

_FLOAT_LARGEST = float(np.finfo(np.float32).max)
_PLAIN: dict[pa.DataType, Any] = {
    pa.null(): type(None),
    pa.bool_(): bool,
    pa.float32(): Annotated[float, msgspec.Meta(ge=-_FLOAT_LARGEST, le=_FLOAT_LARGEST)],
    pa.float64(): float,
    pa.utf8(): str,
    pa.binary(): bytes,  # base64 in JSON
    pa.date32(): datetime.date,
}


def python_type(type: pa.DataType) -> Any:
    """What the decoder is told to make of a value of this type, null included. Raises `InvalidOption`."""
    return _python_type(type) | None


def written_type(type: pa.DataType) -> pa.DataType:
    """The Arrow type of what the decoder makes: times are texts until they are read, all of a column at once."""
    if pa.types.is_timestamp(type):
        return pa.utf8()
    if pa.types.is_list(type):
        return pa.list_(written_type(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(type.key_type, written_type(type.item_type))
    if pa.types.is_struct(type):
        return pa.struct([(field.name, written_type(field.type)) for field in type])
    return type


def read_written(array: pa.Array, type: pa.DataType) -> tuple[pa.Array, Bools | None]:
    """An array of `written_type(type)`, whole and not a slice, as one of `type`; and which of its values hold a text
    that says no time, if there are such.
    """
    if array.type == type:
        return array, None
    if pa.types.is_timestamp(type):
        return timestamps_of(array, type)
    rows = len(array)
    if pa.types.is_list(type):
        items, bad = read_written(array.values, type.value_type)
        value = pa.Array.from_buffers(type, rows, array.buffers()[:2], children=[items])
        return value, _any_within(bad, array)
    if pa.types.is_map(type):
        items, bad = read_written(array.items, type.item_type)
        entry = pa.struct([type.key_field, type.item_field])
        entries = pa.Array.from_buffers(entry, len(items), [None], children=[array.keys, items])
        value = pa.Array.from_buffers(type, rows, array.buffers()[:2], children=[entries])
        return value, _any_within(bad, array)
    # A struct that is null has fields with empty texts in it; flattened, they are null as well.
    parts = [read_written(part, field.type) for part, field in zip(array.flatten(), type, strict=True)]
    value = pa.Array.from_buffers(type, rows, array.buffers()[:1], children=[part for part, _ in parts])
    found = [bad for _, bad in parts if bad is not None]
    return value, np.logical_or.reduce(found) if found else None


def _any_within(bad: Bools | None, array: pa.Array) -> Bools | None:
    """Which lists, or maps, hold an item that is bad."""
    if bad is None:
        return None
    before = np.concatenate(([0], np.cumsum(bad)))[array.offsets.to_numpy()]
    within: Bools = before[1:] > before[:-1]
    return within


def _python_type(type: pa.DataType) -> Any:
    if type in _PLAIN:
        return _PLAIN[type]
    if pa.types.is_integer(type):
        least = -(1 << (type.bit_width - 1))
        return Annotated[int, msgspec.Meta(ge=least, le=-least - 1)]
    if pa.types.is_decimal(type):
        return Decimal
    if pa.types.is_timestamp(type):
        return str
    if pa.types.is_list(type):
        return list[python_type(type.value_type)]  # type: ignore[misc]  # a type that is made here
    if pa.types.is_map(type):
        if type.key_type != pa.utf8():
            raise refused("names in JSON are texts, so that a map has keys of the type STRING")
        return dict[str, python_type(type.item_type)]  # type: ignore[misc]
    # A dictionary that may leave out any of its keys; others are passed over.
    keys = {field.name: python_type(field.type) for field in type}
    return cast(Any, TypedDict)("Nested", keys, total=False)
