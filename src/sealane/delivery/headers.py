"""One header of every message, as a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.message.batch import offsets_of


def header_values(headers: pa.MapArray, name: pa.StringScalar) -> pa.StringArray:
    """The value of the header `name` of each message, null where there is none.

    Compares all names of the batch at once and then finds the rows of the few that match, which is several times
    faster than Arrow's own look-up in each row's map.
    """
    rows = len(headers)
    offsets = offsets_of(headers)
    first, entries = int(offsets[0]), int(offsets[-1] - offsets[0])
    if not entries or headers.null_count == rows:
        return pa.nulls(rows, pa.utf8())
    hits = pc.equal(headers.keys.slice(first, entries), name).to_numpy(zero_copy_only=False)
    # Backwards, so that of two entries of one name the first stands.
    places = np.flatnonzero(hits)[::-1] + first
    chosen = np.full(rows, -1, dtype=np.int32)
    chosen[np.searchsorted(offsets, places, side="right") - 1] = places
    if headers.null_count:
        chosen[headers.is_null().to_numpy(zero_copy_only=False)] = -1
    return headers.items.take(pa.array(chosen, mask=chosen < 0))
