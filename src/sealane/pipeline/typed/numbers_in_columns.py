"""Taking phone numbers out of columns, by the same rule as out of a document: see `sealane.pipeline.clean.numbers`.

A number that is a number in its schema, under a name that says phone, has a column of texts: its hash is one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.field_names import WITHIN_PHONE, says_phone
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.suspects import may_be_numbers


def says_so(name: str, by_name: bool) -> bool:
    """Whether a field says phone, by itself or within one that does."""
    return says_phone(name) or (by_name and name.lower() in WITHIN_PHONE)


def is_numeric(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def hashed_type(type: pa.DataType, by_name: bool = False) -> pa.DataType:
    """The type that values have once numbers are hashed."""
    if by_name and is_numeric(type):
        return pa.utf8()
    if pa.types.is_list(type):
        return pa.list_(hashed_type(type.value_type, by_name))
    if pa.types.is_struct(type):
        return pa.struct([(field.name, hashed_type(field.type, says_so(field.name, by_name))) for field in type])
    return type


def without_numbers(values: pa.Array, numbers: Numbers, by_name: bool = False) -> pa.Array:
    """The values with numbers hashed, of `hashed_type`. The array begins with its buffers: it is no slice."""
    type = values.type
    if pa.types.is_string(type):
        return _texts(values, numbers, by_name)
    if pa.types.is_binary(type):
        return _bytes(values, numbers, by_name)
    if by_name and is_numeric(type):
        return _each(values, numbers, by_name)
    if pa.types.is_map(type):
        return _maps(values, numbers, by_name)
    if pa.types.is_list(type):
        items = without_numbers(values.values, numbers, by_name)
        wanted = pa.list_(items.type)
        return pa.Array.from_buffers(wanted, len(values), values.buffers()[:2], values.null_count, children=[items])
    if pa.types.is_struct(type):
        names = [field.name for field in type]
        children = [
            without_numbers(part, numbers, says_so(name, by_name))
            for name, part in zip(names, values.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(children, names, mask=values.is_null() if values.null_count else None)
    return values


def _texts(values: pa.Array, numbers: Numbers, by_name: bool) -> pa.Array:
    """Most texts are no numbers, and columns find that out by themselves."""
    may_be = may_be_numbers(values)
    if not may_be.any():
        return values
    mask = pa.array(may_be)
    return pc.replace_with_mask(values, mask, _each(values.filter(mask), numbers, by_name))


def _bytes(values: pa.Array, numbers: Numbers, by_name: bool) -> pa.Array:
    """Bytes may be a text, and are bytes again."""
    may_be = may_be_numbers(values)
    if not may_be.any():
        return values
    mask = pa.array(may_be)
    kept = [_of_text(value, numbers, by_name) for value in values.filter(mask).to_pylist()]
    return pc.replace_with_mask(values, mask, pa.array(kept, values.type))


def _of_text(value: bytes, numbers: Numbers, by_name: bool) -> bytes:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value
    found: str = _in_document(text, numbers, by_name)
    return found.encode()


def _each(values: pa.Array, numbers: Numbers, by_name: bool) -> pa.Array:
    """Each different value is looked at once."""
    coded = values.dictionary_encode()
    kept = [str(_in_document(_whole(value), numbers, by_name)) for value in coded.dictionary.to_pylist()]
    return pa.array(kept, pa.utf8()).take(coded.indices)


def _in_document(value: Any, numbers: Numbers, by_name: bool) -> Any:
    name = "phone" if by_name else ""
    return numbers.in_document({name: value})[name]


def _whole(value: Any) -> Any:
    """A number as JSON would have it: digits alone have no fraction, whatever the type."""
    return value if isinstance(value, str) or value != value or value % 1 else int(value)


def _maps(values: pa.Array, numbers: Numbers, by_name: bool) -> pa.Array:
    """Which values are numbers is said by keys, and these are data: one by one, as documents."""
    documents = (_document(value, values.type) for value in values.to_pylist())
    return pa.array([_value(_in_document(each, numbers, by_name), values.type) for each in documents], values.type)


def _document(value: Any, type: pa.DataType) -> Any:
    """As JSON would have it: maps are objects."""
    if value is None:
        return None
    if pa.types.is_map(type):
        return {str(key): _document(item, type.item_type) for key, item in value}
    if pa.types.is_list(type):
        return [_document(item, type.value_type) for item in value]
    if pa.types.is_struct(type):
        return {field.name: _document(value[field.name], field.type) for field in type}
    return value


def _value(document: Any, type: pa.DataType) -> Any:
    """And back: a hash where only a number can stand is null."""
    if document is None:
        return None
    if pa.types.is_map(type):
        return [(_key(key, type.key_type), _value(item, type.item_type)) for key, item in document.items()]
    if pa.types.is_list(type):
        return [_value(item, type.value_type) for item in document]
    if pa.types.is_struct(type):
        return {field.name: _value(document.get(field.name), field.type) for field in type}
    return None if is_numeric(type) and isinstance(document, str) else document


def _key(name: str, type: pa.DataType) -> Any:
    """The key of a map whose name in a document this is: only what is a text there can have been hashed."""
    if pa.types.is_string(type):
        return name
    return name == str(True) if pa.types.is_boolean(type) else int(name)
