"""Reading payloads in tests: what comes back, checked as an Arrow array and as Python values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sealane.spark.values import Values


def read(values: Values, payloads: Sequence[bytes | None]) -> list[Any]:
    """The value of each payload, None where it is corrupt; all that is promised of both arrays is checked."""
    array = pa.array(payloads, pa.binary())
    value, corrupt = values.read(array)
    value.validate(full=True)
    corrupt.validate(full=True)
    assert value.type == values.arrow_type
    assert corrupt.type == pa.binary()
    found = [plain(one, values.arrow_type) for one in value.to_pylist()]
    for payload, one, left in zip(payloads, found, corrupt.to_pylist(), strict=True):
        assert left == (payload if one is None else None)
    return found


def plain(value: Any, type: pa.DataType) -> Any:
    """A value that can be compared: maps are dictionaries, and what is not a number is equal to itself."""
    if value is None:
        return None
    if pa.types.is_struct(type):
        return {field.name: plain(value[field.name], field.type) for field in type}
    if pa.types.is_list(type):
        return [plain(item, type.value_type) for item in value]
    if pa.types.is_map(type):
        pairs = value.items() if isinstance(value, dict) else value
        found = {key: plain(item, type.item_type) for key, item in pairs}
        assert len(found) == len(value), "a key is there twice"
        return found
    if pa.types.is_floating(type):
        return "not a number" if math.isnan(value) else value
    return value
