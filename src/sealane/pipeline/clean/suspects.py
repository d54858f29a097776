"""Which values of a column may have a phone number at all, found without a look at each in Python.

Few have: they alone are asked about one by one. The rules here let through more than `phone_numbers` and `field_names`
take for a number, and never less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.field_names import PHONE_WORDS
from sealane.pipeline.clean.phone_numbers import CHARACTERS, DIGITS

Mask = npt.NDArray[np.bool_]

# Expressions of RE2, over bytes. Whatever is not ASCII may be another writing of a digit, a dash or a space.
_SPACES = r"[\x09-\x0d\x1c-\x20]*"
_NOT_ASCII = r"[\x80-\xff]"
_WRITTEN = rf"\A{_SPACES}(?:[tT][eE][lL]:)?{_SPACES}[+(0-9][0-9 ./()-]*{_SPACES}\z"
_WRITTEN_OR_NOT_ASCII = rf"{_WRITTEN}|{_NOT_ASCII}"
_UTF8_BYTES_MAX = 4
"""Of a character."""

_COUNTRY = r'"[\x00-\x20]*(?:[tT][eE][lL]:)?[\x00-\x20]*(?:\+|00)'
"""The beginning of a text in JSON that has a number with its country."""
_ESCAPED = r"\\"
_STEMS = sorted(word for word in PHONE_WORDS if not any(other in word for other in PHONE_WORDS - {word}))
"""The words of names that say so, less those that have another one in them."""
_IN_DOCUMENT = rf"{_COUNTRY}|{_ESCAPED}|{_NOT_ASCII}|(?i:{'|'.join(_STEMS)})"


def may_be_numbers(values: pa.Array) -> Mask:
    """Of texts, or bytes that may be some, which ones may be a number as a whole. Null is none."""
    mask = np.zeros(len(values), dtype=bool)
    data = values if pa.types.is_binary(values.type) else values.cast(pa.binary())
    lengths = pc.fill_null(pc.binary_length(data), 0).to_numpy()
    short = np.flatnonzero((lengths >= DIGITS.start) & (lengths <= CHARACTERS * _UTF8_BYTES_MAX))
    if len(short):
        some = data if len(short) == len(data) else data.take(pa.array(short))
        mask[short] = _matches(some, _WRITTEN_OR_NOT_ASCII)
    return mask


def may_have_numbers(documents: pa.Array) -> Mask:
    """Of payloads that look like JSON, those in which a value or a name may be a number. Null is none."""
    return _matches(documents, _IN_DOCUMENT)


def _matches(data: pa.Array, expression: str) -> Mask:
    found: Mask = pc.fill_null(pc.match_substring_regex(data, expression), False).to_numpy(zero_copy_only=False)
    return found
