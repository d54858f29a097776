"""Numbers and moments as people read them on the page: `1.2 M`, `350 ms`, `0.4 %`, `3 Jan 14:00`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

Shown = Callable[[float], str]

_THIN = "\u202f"
"""Between a number and its unit: they stay together."""
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def count(value: float) -> str:
    """`950`, `1.2 k`, `35 M`: three digits at most, so rounded."""
    for size, unit in _COUNTS:
        # What would be rounded to 1000 of a unit is 1 of the next one.
        if abs(value) >= size * 0.9995:
            return f"{_short(value / size)}{_THIN}{unit}"
    return _short(value)


def exactly(value: float) -> str:
    """`1,234,567`."""
    return f"{value:,.0f}"


def milliseconds(value: float) -> str:
    """`0.4 ms`, `350 ms`, `1.2 s`, `5 min`, `2.5 h`."""
    for size, unit in _TIMES_MS:
        if abs(value) >= size * 0.9995:
            return f"{_short(value / size)}{_THIN}{unit}"
    return f"{_short(value)}{_THIN}ms"


def percent(value: float) -> str:
    """Of a share: `0.04 %`, `12 %`."""
    return f"{_short(value * 100)}{_THIN}%"


def size_bytes(value: float) -> str:
    place = 0
    while value >= 1024 and place < len(_SIZES) - 1:
        value /= 1024
        place += 1
    return f"{_short(value)}{_THIN}{_SIZES[place]}"


def moment(time: datetime) -> str:
    """`3 Jan 2026 14:05`, in the zone of the moment, which is UTC everywhere on the page."""
    return f"{time.day} {time:%b %Y %H:%M}"


def length(seconds: float) -> str:
    """Of a span or a step: `5 minutes`, `31 days`."""
    units = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((each for each in units if seconds >= each[0]), units[-1])
    amount = _short(seconds / size)
    return f"{amount} {unit}" if amount == "1" else f"{amount} {unit}s"


def per(seconds: float) -> str:
    """Of a step: `per minute`, `per 5 minutes`."""
    return f"per {length(seconds).removeprefix('1 ')}"


def several(amount: int, one: str, more: str | None = None) -> str:
    """`1 message`, `3 messages`."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"


def _short(value: float) -> str:
    """Three digits, and no zeros behind the point."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.1 else 4
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
