"""What looks like a phone number, and what is the same number in two writings.

The rule is made to leave other numbers alone: an order number must not become a hash.

- *International*: a plus, or two zeros and a separator behind the country, and 7 to 15 digits: `+491701234567`,
  `+49 (0)170 123-4567`, `0049 170 1234567`, `tel:+49-170-1234567`. A signed decimal, `+1234567.89`, is none.
- *National*: an area that begins with 0 or stands in parentheses, a separator, and the rest in groups of two digits or
  more: `0170-1234567`, `030/123456`, `(030) 123456`, `06 12 34 56 78`. Or groups of 3, 3 and 4 digits, as in North
  America: `415-555-2671`. Dates (`01-02-2026`) and addresses of network cards (`01-11-22-33-44-55`) are none.
- Digits alone, `123456789` or `01701234567`, are a number only where a name says so: `{"phone": "01701234567"}`.

Digits, dashes and spaces may be any of Unicode's that mean the same.
"""

from __future__ import annotations

import re
import unicodedata

DIGITS = range(7, 16)
"""How many a number has: E.164 allows 15, and shorter than 7 is a service, an extension or no number at all."""
CHARACTERS = 40
"""A longer text is no number, however it is written."""

_PREFIX = "tel:"
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_NOT_A_DIGIT = re.compile(r"[^0-9]")
_COUNTRY = re.compile(r"^00(?=[1-9])")
_TRUNK_ZERO = re.compile(r"\( ?0 ?\)")
"""As in `+49 (0)170`: dialled within the country, and no part of the number."""

_WRITTEN = re.compile(r"[+(]?[0-9][0-9 ./()-]*[0-9]")
_PLUS = re.compile(r"\+ ?\(?[1-9][0-9 ./()-]*[0-9]")
_DECIMAL = re.compile(r"\+[0-9]{4,}\.[0-9]+")
_ZEROS = re.compile(r"00[1-9][0-9]{0,2}[ ./-][0-9 ./()-]*[0-9]")
_AREA = re.compile(r"(?:0[1-9][0-9]{0,4} ?[ /-] ?|\([0-9]{2,5}\) ?[/-]? ?)[0-9]{2,}(?:[ -][0-9]{2,})*")
_THREE_THREE_FOUR = re.compile(r"[2-9][0-9]{2}([ .-])[2-9][0-9]{2}\1[0-9]{4}")
_DATE = re.compile(r"[0-9]{1,2}([ ./-])[0-9]{1,2}\1[0-9]{4}|[0-9]{4}([ ./-])[0-9]{1,2}\2[0-9]{1,2}")
_NETWORK_CARD = re.compile(r"(?:[0-9]{2}-){5}[0-9]{2}")


def is_number(text: str) -> bool:
    """Whether it looks like a phone number wherever it stands: international or national."""
    return _has_digits(text) and (_is_international(plain := _plain(text)) or _is_national(plain))


def is_international(text: str) -> bool:
    """Whether it looks like a phone number with its country."""
    return _has_digits(text) and _is_international(_plain(text))


def is_number_by_name(text: str) -> bool:
    """Whether it may be a phone number where a name says that one stands there: digits alone are enough."""
    if not _has_digits(text):
        return False
    plain = _plain(text)
    return _WRITTEN.fullmatch(plain) is not None and not _DATE.fullmatch(plain) and _is_long_enough(plain)


def normalised(text: str) -> str:
    """The number as it is hashed: `+` and digits with a country, digits alone without one."""
    plain = _COUNTRY.sub("+", _plain(text))
    digits = _NOT_A_DIGIT.sub("", _TRUNK_ZERO.sub("", plain) if plain.startswith("+") else plain)
    return f"+{digits}" if plain.startswith("+") else digits


def _is_international(plain: str) -> bool:
    if plain.startswith("+"):
        return _PLUS.fullmatch(plain) is not None and not _DECIMAL.fullmatch(plain) and _is_long_enough(plain)
    return _ZEROS.fullmatch(plain) is not None and _is_long_enough(plain)


def _is_national(plain: str) -> bool:
    written = _AREA.fullmatch(plain) or _THREE_THREE_FOUR.fullmatch(plain)
    other = _DATE.fullmatch(plain) or _NETWORK_CARD.fullmatch(plain)
    return bool(written) and not other and _is_long_enough(plain)


def _is_long_enough(plain: str) -> bool:
    return len(normalised(plain).lstrip("+")) in DIGITS


def _has_digits(text: str) -> bool:
    """What most texts fail at, at little cost."""
    return DIGITS.start <= len(text) <= CHARACTERS and any(map(str.isdecimal, text))


def _plain(text: str) -> str:
    """In ASCII as far as it means the same, and without what stands around it."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    text = text.strip()
    return text[len(_PREFIX) :].strip() if text[: len(_PREFIX)].lower() == _PREFIX else text
