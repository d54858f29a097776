"""Sizes and durations as people write them: `64MiB`, `500ms`, `1h30m`."""

from __future__ import annotations

import re

SIZES = {
    "B": 1,
    "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
DURATIONS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}

_QUANTITY = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def quantity(text: str, units: dict[str, int] | dict[str, float], *, fold: bool) -> float | None:
    """The sum of `1h30m`; None if any part of the text is not a number with a unit."""
    total: float = 0
    position = 0
    while position < len(text):
        part = _QUANTITY.match(text, position)
        if part is None:
            return None
        factor = units.get(part[2].lower() if fold else part[2])
        if factor is None:
            return None
        digits = part[1].replace("_", "")
        # Whole numbers stay whole: a size of many GiB has more digits than a float keeps.
        total += (float(digits) if "." in digits else int(digits)) * factor
        position = part.end()
    return total if position else None
