"""Names of fields and headers that say: here is a phone number."""

from __future__ import annotations

import re
from functools import lru_cache

PHONE_WORDS = frozenset(
    {
        *("phone", "phones", "phonenumber", "phonenumbers", "telephone", "telephonenumber", "tel", "msisdn"),
        *("mobile", "mobilenumber", "mobilephone", "cellphone", "smartphone", "fax", "faxnumber", "whatsapp"),
        *("telefon", "telefonnummer", "handy", "handynummer", "mobilnummer", "rufnummer", "telefax"),
    }
)
"""One of them as a word of the name is enough: `phone`, `customerPhone`, `x-mobile-number`, `tel_2`."""
WITHIN_PHONE = frozenset({"number", "value", "e164", "international", "national"})
"""Names that say it within an object whose own name does: `{"phone": {"kind": "home", "number": "…"}}`."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def says_phone(name: str) -> bool:
    """Whether a field of this name has a phone number. Words end at a capital, a digit, or whatever is no letter."""
    return any(word.lower() in PHONE_WORDS for word in _WORD.findall(name)) or name.lower() in PHONE_WORDS
