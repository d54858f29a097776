"""From the fields of a schema to the columns of a table: types that need no widening, and names that any tool takes.

Whole numbers are 64 bits and fractions are doubles, whatever the schema says. So a schema that goes from `int` to
`long` or from `float` to `double` changes nothing in the table: readers disagree on how files of two widths are one
column.
"""

from __future__ import annotations

import re
from functools import reduce

import pyarrow as pa

from sealane.spark.source.rows.columns import MESSAGE_SCHEMA

MESSAGE_COLUMNS = tuple(MESSAGE_SCHEMA.field(name) for name in ("id", "partition", "offset", "created", "key"))
"""What each row has of its message."""
MISFIT = pa.field("_misfit", pa.utf8())
"""Why a row has no values, where it has none."""

ROW = pa.field("_row", pa.int64())
"""Which row of its payload it is, where payloads have any number of them, as Arrow's have."""

_TAKEN = (*(field.name for field in MESSAGE_COLUMNS), ROW.name, MISFIT.name, "domain", "topic", "date")
_UNUSUAL = re.compile(r"[^\w-]")
"""What names are written without: Delta takes none of ` ,;{}()=`, and a dot means a field within another one in SQL."""


def widened(type: pa.DataType) -> pa.DataType | None:
    """The type of the column that has values of this type; None for what can never be anything but null."""
    if pa.types.is_null(type):
        return None
    if pa.types.is_integer(type):
        return pa.int64()
    if pa.types.is_floating(type):
        return pa.float64()
    if pa.types.is_list(type):
        item = widened(type.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_map(type):
        item = widened(type.item_type)
        return None if item is None else pa.map_(widened(type.key_type), item)
    if pa.types.is_struct(type):
        fields = [(field.name, wide) for field in type if (wide := widened(field.type)) is not None]
        return pa.struct(fields) if fields else None
    return type


def merged(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The type of a column that has values of both: fields that are new come after the others, so that these keep their
    names. None if there is no such type.
    """
    if old == new:
        return old
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return _merged_fields(old, new)
    if pa.types.is_list(old) and pa.types.is_list(new):
        item = merged(old.value_type, new.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_map(old) and pa.types.is_map(new) and old.key_type == new.key_type:
        item = merged(old.item_type, new.item_type)
        return None if item is None else pa.map_(old.key_type, item)
    return None


def _merged_fields(old: pa.StructType, new: pa.StructType) -> pa.StructType | None:
    found = {field.name: field.type for field in old}
    for field in new:
        type = merged(found[field.name], field.type) if field.name in found else field.type
        if type is None:
            return None
        found[field.name] = type
    return pa.struct(list(found.items()))


def columns_of(fields: pa.StructType) -> pa.StructType:
    """The same with the names that columns have: a field that is called as a column of the message is `value_…`."""
    return _named(fields, _TAKEN)


def row_schema(columns: pa.StructType, *, has_rows: bool = False) -> pa.Schema:
    """Of a table with these columns, as its files have it; `has_rows`: a message may be any number of rows."""
    return pa.schema([*MESSAGE_COLUMNS, *columns, *([ROW] if has_rows else []), MISFIT])


def _named(type: pa.DataType, taken: tuple[str, ...] = ()) -> pa.DataType:
    if pa.types.is_list(type):
        return pa.list_(_named(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(type.key_type, _named(type.item_type))
    if not pa.types.is_struct(type):
        return type
    names = reduce(_with_name, (field.name for field in type), list(taken))[len(taken) :]
    return pa.struct([(name, _named(field.type)) for name, field in zip(names, type, strict=True)])


def _with_name(names: list[str], field: str) -> list[str]:
    """One more. Spark does not tell letters of different case apart."""
    taken = {name.lower() for name in names}
    plain = _UNUSUAL.sub("_", field) or "_"
    if plain.lower() in _TAKEN and plain.lower() in taken:
        plain = f"value_{plain}"
    name, number = plain, 1
    while name.lower() in taken:
        number += 1
        name = f"{plain}_{number}"
    return [*names, name]


def as_columns(values: pa.Array, fields: pa.DataType, columns: pa.DataType) -> pa.Array:
    """Values of a schema's own type, found by the names of `fields`, as values of the columns: what they do not have is
    null. The array begins with its buffers: it is no slice.
    """
    if values.type == columns:
        return values
    if pa.types.is_struct(columns):
        # Flattened, what is within a null is null as well.
        parts = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        children = [
            as_columns(parts[field.name], field.type, column.type)
            if field.name in parts
            else pa.nulls(len(values), column.type)
            for field, column in zip(fields, columns, strict=True)
        ]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(columns), mask=mask)
    if pa.types.is_list(columns):
        items = as_columns(values.values, fields.value_type, columns.value_type)
        return pa.Array.from_buffers(columns, len(values), values.buffers()[:2], values.null_count, children=[items])
    if pa.types.is_map(columns):
        items = as_columns(values.items, fields.item_type, columns.item_type)
        entry = pa.struct([columns.key_field, columns.item_field])
        entries = pa.Array.from_buffers(entry, len(items), [None], children=[values.keys.cast(columns.key_type), items])
        return pa.Array.from_buffers(columns, len(values), values.buffers()[:2], values.null_count, children=[entries])
    return values.cast(columns)
