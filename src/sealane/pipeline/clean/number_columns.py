"""Keys and headers without phone numbers, a column at a time: `Numbers` is asked about those alone that may be one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sealane.pipeline.clean.columns import replaced, taken
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.suspects import may_be_numbers
from sealane.pipeline.secrets.lake_keys import LakeKeys


class DomainNumbers:
    """The numbers of each domain, by the lake's keys."""

    def __init__(self, keys: LakeKeys) -> None:
        self._keys = keys
        self._known: dict[str, Numbers] = {}

    def of(self, domain: str) -> Numbers:
        found = self._known.get(domain)
        if found is None:
            found = self._known[domain] = Numbers(self._keys, domain)
        return found


def clean_keys(keys: pa.Array, domains: pa.Array, numbers: DomainNumbers) -> pa.Array:
    """What `Numbers.in_bytes` makes of each; null stays null."""
    if keys.null_count == len(keys):
        return keys
    rows = np.flatnonzero(may_be_numbers(keys))
    if not len(rows):
        return keys
    some = zip(taken(keys, rows).to_pylist(), taken(domains, rows).to_pylist(), strict=True)
    return replaced(keys, rows, pa.array([numbers.of(domain).in_bytes(key) for key, domain in some], keys.type))


def clean_headers(headers: pa.MapArray, domains: pa.Array, numbers: DomainNumbers) -> pa.MapArray:
    """What `Numbers.in_headers` makes of each; null stays null."""
    if headers.null_count == len(headers):
        return headers
    starts = headers.offsets.to_numpy()
    first, stop = int(starts[0]), int(starts[-1])
    found = first + np.flatnonzero(may_be_numbers(headers.items.slice(first, stop - first)))
    # What a null has below it is nobody's; a row of it stays null whatever is made of that.
    rows = np.unique(np.searchsorted(starts, found, side="right") - 1)
    if not len(rows):
        return headers
    some = zip(taken(headers, rows).to_pylist(), taken(domains, rows).to_pylist(), strict=True)
    made = [each and numbers.of(domain).in_headers(each) for each, domain in some]
    return replaced(headers, rows, pa.array(made, headers.type))
