"""JSON documents whose values are right and are written in another way than their columns want."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from sealane.pipeline.typed.numbers_in_columns import is_numeric, says_so

LONG_STOP = 1 << 63
"""What 64 bits cannot hold any more."""


def fitted(document: Any, type: pa.DataType, by_name: bool = False, in_map: bool = False) -> Any:
    """The document with `1.0` as `1` where a whole number is wanted, and numbers as texts where a name says phone; what
    else does not fit stays as it is. In a map, a hash where only a number can stand is null.
    """
    if pa.types.is_struct(type) and isinstance(document, dict):
        types = {field.name: field.type for field in type}
        return {
            name: fitted(value, types[name], says_so(name, by_name)) if name in types else value
            for name, value in document.items()
        }
    if pa.types.is_list(type) and isinstance(document, list):
        return [fitted(value, type.value_type, by_name) for value in document]
    if pa.types.is_map(type) and isinstance(document, dict):
        return {name: fitted(value, type.item_type, in_map=True) for name, value in document.items()}
    if pa.types.is_integer(type) and isinstance(document, Decimal):
        return _whole(document)
    if pa.types.is_string(type) and by_name and isinstance(document, int | Decimal) and not isinstance(document, bool):
        return str(document)
    if in_map and is_numeric(type) and isinstance(document, str):
        return None
    return document


def _whole(number: Decimal) -> int | Decimal:
    """Its size comes first: a few signs of JSON can be a number of a billion digits."""
    return int(number) if abs(number) < LONG_STOP and number == number.to_integral_value() else number
