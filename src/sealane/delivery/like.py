"""SQL's LIKE on a column: % is any run of characters, _ any one, and a backslash takes the next character literally."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from sealane.message.arrow_compute import pc

_RUN: Final = object()
_ONE: Final = object()


def compile_like(pattern: str) -> Callable[[Any], Any]:
    """What matches a text or binary array (or scalar) against the pattern; null stays null.

    In a binary column _ is any one byte. Every pattern runs in time linear in the data. `ValueError` for a pattern that
    is too large.
    """
    parts = _parts(pattern)
    runs = [place for place, part in enumerate(parts) if part is _RUN]
    if _ONE not in parts:
        text = "".join(part for part in parts if isinstance(part, str))
        last = len(parts) - 1
        # These few shapes are most of what people write, and Arrow has a function for each.
        if runs == [last]:
            return lambda values: pc.starts_with(values, text)
        if runs == [0]:
            return lambda values: pc.ends_with(values, text)
        if runs == [0, last]:
            return lambda values: pc.match_substring(values, text)
    expression = _regular_expression(parts)
    try:
        pc.match_substring_regex(pa.array([], pa.utf8()), expression)
    except pa.ArrowInvalid:
        raise ValueError("this pattern is too large") from None
    return lambda values: pc.match_substring_regex(values, expression)


def _parts(pattern: str) -> list[object]:
    parts: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            if not parts or parts[-1] is not _RUN:
                parts.append(_RUN)
        elif character == "_":
            parts.append(_ONE)
        else:
            parts.append(next(characters, "\\") if character == "\\" else character)
    return parts


def _regular_expression(parts: list[object]) -> str:
    pieces = []
    for part in parts:
        if part is _RUN:
            pieces.append(".*")
        elif part is _ONE:
            pieces.append(".")
        else:
            character = str(part)
            plain = character.isalnum() or ord(character) > 127
            pieces.append(character if plain else f"\\x{{{ord(character):x}}}")
    return "(?s)\\A" + "".join(pieces) + "\\z"
