"""A setting's value as people write it: `64MiB`, `7d`, `on`, `none`; and back."""

from __future__ import annotations

import math

from sealane.server.quantities import DURATIONS, SIZES, quantity
from sealane.server.schema import Scalar, Setting

_SIZES_ANY_CASE = {unit.lower(): factor for unit, factor in SIZES.items()}
_SWITCH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


class NotAllowed(Exception):
    """The value is none that the setting can have; the text says what it can."""


def parse(setting: Setting, raw: object) -> Scalar:
    """The value that was meant. Raises `NotAllowed`."""
    if raw is None or (isinstance(raw, str) and raw.strip().lower() in ("none", "null")):
        if setting.optional:
            return None
        raise NotAllowed(allowed(setting))
    if setting.type is bool:
        value: Scalar = _SWITCH.get(str(raw).strip().lower())
    elif isinstance(raw, bool):
        value = None
    elif setting.type is str:
        value = raw if isinstance(raw, str) and raw and (not setting.choices or raw in setting.choices) else None
    else:
        value = _number(setting, raw)
    if value is None:
        raise NotAllowed(allowed(setting))
    return value


def allowed(setting: Setting) -> str:
    """What a setting may be, to complete "expected …"."""
    least, most = setting.range
    if setting.type is bool:
        text = "on or off"
    elif setting.choices:
        text = "one of " + ", ".join(setting.choices)
    elif setting.type is str:
        text = "text"
    elif setting.is_size:
        text = "a size in bytes, such as 65536 or 64MiB"
    elif setting.is_duration:
        text = "a time in seconds, such as 90, or one such as 500ms, 30s, 1h30m, 7d"
    elif most is not None:
        text = f"a whole number from {least} to {most}"
    else:
        text = "a whole number of at least 0" if setting.type is int else "a number of at least 0"
    return f"{text}, or none" if setting.optional else text


def shown(setting: Setting, value: Scalar) -> str:
    """The value as a person would write it; `parse` reads it back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if setting.is_size and isinstance(value, int):
        return _in_units(value, {unit: SIZES[unit] for unit in ("KiB", "MiB", "GiB", "TiB")})
    if setting.is_duration and not isinstance(value, str):
        if 0 < value < 1 and math.isclose(value * 1000, round(value * 1000)):
            return f"{round(value * 1000)}ms"
        return _in_units(value, {"s": 1, "min": 60, "h": 3600, "d": 86_400})
    return str(value)


def _number(setting: Setting, raw: object) -> int | float | None:
    number: float | int | None
    if isinstance(raw, int | float):
        number = raw
    elif isinstance(raw, str):
        number = _plain(raw)
        if number is None and setting.is_size:
            number = quantity(raw, _SIZES_ANY_CASE, fold=True)
        if number is None and setting.is_duration:
            number = quantity(raw, DURATIONS, fold=False)
    else:
        number = None
    least, most = setting.range
    if number is None or not math.isfinite(number) or number < least or (most is not None and number > most):
        return None
    if setting.type is float:
        return float(number)
    return int(number) if number == int(number) else None


def _plain(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _in_units(value: int | float, units: dict[str, int]) -> str:
    """In the largest unit that gives a whole number."""
    if value != int(value):
        return str(value)
    for unit, factor in sorted(units.items(), key=lambda item: -item[1]):
        if value and value % factor == 0:
            return f"{int(value // factor)}{unit}"
    return str(int(value))
