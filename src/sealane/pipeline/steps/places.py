"""Rows that belong to the same place, together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc


def by_place(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of each place, in their order; a place is what these columns say, of which none is null."""
    if not len(rows):
        return
    # Arrow's own sort is not stable.
    numbered = rows.append_column("_row", pa.array(np.arange(len(rows))))
    order = pc.sort_indices(numbered, sort_keys=[(name, "ascending") for name in (*names, "_row")])
    rows = rows.take(order).combine_chunks()
    is_new = np.zeros(len(rows), dtype=bool)
    is_new[0] = True
    for name in names:
        column = rows[name].combine_chunks()
        is_new[1:] |= np.asarray(pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)))
    starts = np.flatnonzero(is_new).tolist()
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        yield {name: rows[name][start].as_py() for name in names}, rows.slice(start, stop - start)
