"""Reading many payloads at once, though any of them may be one that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]
Item = TypeVar("Item")


def read_by_halves(
    items: Sequence[Item], read: Callable[[Sequence[Item]], pa.Array], unreadable: tuple[type[Exception], ...]
) -> tuple[list[pa.Array], Bools]:
    """What `read` makes of the items, in their order and in as few pieces as can be; and which of them it could read.

    Where it raises one of `unreadable`, halves are read. So each item is judged by itself alone.
    """
    if not items:
        return [], np.zeros(0, dtype=np.bool_)
    try:
        return [read(items)], np.ones(len(items), dtype=np.bool_)
    except unreadable:
        if len(items) == 1:
            return [], np.zeros(1, dtype=np.bool_)
    middle = len(items) // 2
    first, first_read = read_by_halves(items[:middle], read, unreadable)
    second, second_read = read_by_halves(items[middle:], read, unreadable)
    return [*first, *second], np.concatenate((first_read, second_read))


def spread(pieces: Sequence[pa.Array], is_read: Bools, type: pa.DataType) -> pa.Array:
    """The pieces as one array, with null for each item that was not read."""
    whole = pieces[0] if len(pieces) == 1 else pa.concat_arrays([pa.array([], type), *pieces])
    if is_read.all():
        return whole
    return whole.take(pa.array(np.cumsum(is_read) - 1, mask=~is_read))
