"""Maps in columns have each key once: of one that is there twice the last counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def last_of_each(starts: npt.NDArray[np.int64], keys: pa.Array) -> npt.NDArray[np.intp]:
    """Which entries to keep, in their order, so that each row has a key once; rows begin at `starts`, from 0 on."""
    of_rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    both = of_rows * max(1, len(encoded.dictionary)) + codes
    _, first_from_behind = np.unique(both[::-1], return_index=True)
    return np.sort(len(both) - 1 - first_from_behind)
