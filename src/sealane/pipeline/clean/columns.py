"""Columns of which some rows are looked at one by one, and the others as a whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]


def taken(column: pa.Array, rows: Rows) -> pa.Array:
    return column if len(rows) == len(column) else column.take(pa.array(rows))


def replaced(column: pa.Array, rows: Rows, values: pa.Array) -> pa.Array:
    """The column, with other values in these rows; of any type, nested ones too."""
    if not len(rows):
        return column
    places = np.arange(len(column))
    places[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, values]).take(pa.array(places))
