"""Durations, sizes and counts, as people write and read them."""

from __future__ import annotations

import math

import typer

from sealane.server.quantities import DURATIONS, quantity

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def parse_seconds(text: str) -> float:
    """Seconds from `90`, `0.5`, `10s`, `500ms`, `5m` or `1h30m`."""
    try:
        seconds = float(text)
    except ValueError:
        # Two words on a command line are more likely a forgotten quote than a duration.
        found = quantity(text, DURATIONS, fold=False) if text.split() == [text] else None
        if found is None:
            raise typer.BadParameter(f"{text!r} is no duration; write seconds, 500ms, 10s, 5m, 1h30m or 7d") from None
        seconds = float(found)
    if not math.isfinite(seconds) or seconds < 0:
        raise typer.BadParameter(f"{text!r} is no duration: it must be 0 or more")
    return seconds


def duration(seconds: float) -> str:
    """In the two largest units that matter: `450ms`, `12s`, `3m 20s`, `2d 4h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms" if seconds else "0s"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    whole = round(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, whole = divmod(whole, length)
        if amount:
            parts.append(f"{amount}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def size(count: float) -> str:
    """`512 B`, `1.5 KiB`, `3.2 GiB`."""
    place = 0
    while count >= 1024 and place < len(_SIZES) - 1:
        count /= 1024
        place += 1
    return f"{count:.0f} {_SIZES[0]}" if place == 0 else f"{count:.1f} {_SIZES[place]}"


def rate(per_second: float) -> str:
    """`0`, `0.4/s`, `850/s`, `12.5k/s`, `1.2M/s`."""
    for limit, suffix in ((1e6, "M"), (1e4, "k")):
        if per_second >= limit:
            scaled = per_second / (1e6 if suffix == "M" else 1e3)
            return f"{scaled:.1f}{suffix}/s"
    if per_second >= 10:
        return f"{per_second:.0f}/s"
    return f"{per_second:.1f}/s" if per_second >= 0.05 else "0"
