"""Points in time that are written as text, a whole column at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.spark.values.spark_type import TIMESTAMP_NTZ

Bools = npt.NDArray[np.bool_]

_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    rf"|{_LEAP_YEAR}-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)?"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"

LOCAL = rf"^{_DAY}(?:[ T]{_TIME})?\z"
"""A day, or a day and a time, of no zone: what Arrow's cast to a time without one takes, and any number of digits."""
ZONED = rf"^{_DAY}[ T]{_TIME}{_ZONE}\z"
"""A day and a time in a zone: what Arrow's cast to a time with one takes, and any number of digits."""

_TOO_FINE = r"(\.\d{6})\d+"
_NO_TEXT = pa.scalar(None, pa.utf8())


def timestamps_of(texts: pa.Array, type: pa.TimestampType) -> tuple[pa.Array, Bools | None]:
    """ISO 8601 texts as points in time, and which of them are none (and null), if there are such.

    What is finer than a microsecond is cut off. Of a type with a zone, a text without one is in UTC; of a type without,
    a text must have none.
    """
    try:
        return texts.cast(type), None
    except pa.ArrowInvalid:
        pass
    # Each text is judged by its form alone, which is that of the cast above: what that takes, this takes as it is.
    is_local = pc.match_substring_regex(texts, LOCAL)
    shortened = pc.replace_substring_regex(texts, _TOO_FINE, r"\1")
    local = pc.if_else(is_local, shortened, _NO_TEXT).cast(TIMESTAMP_NTZ)
    if type.tz is None:
        times = local
    else:
        is_zoned = pc.match_substring_regex(texts, ZONED)
        times = pc.coalesce(pc.if_else(is_zoned, shortened, _NO_TEXT).cast(type), local.cast(type))
    bad: Bools = pc.and_(texts.is_valid(), times.is_null()).to_numpy(zero_copy_only=False)
    return times, bad if bad.any() else None
