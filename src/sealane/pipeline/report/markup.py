"""HTML and SVG as text, with everything escaped that is not markup of our own."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is markup already. Any other text is escaped where it comes into an element."""

    __slots__ = ()


Part = str | Markup | None


def element(name: str, *parts: Part, **attributes: str | float | None) -> Markup:
    """`<name …>parts</name>`; `_` in an attribute's name is a `-`, and one behind it is left out (`class_`)."""
    return Markup(f"{_opening(name, attributes)}>{joined(parts)}</{name}>")


def empty(name: str, **attributes: str | float | None) -> Markup:
    """An element that has nothing in it: `<path …/>`."""
    return Markup(f"{_opening(name, attributes)}/>")


def joined(parts: Iterable[Part]) -> Markup:
    return Markup("".join(_safe(part) for part in parts if part is not None))


def share(value: float) -> str:
    """Of the width of what is around it: `12.5%`."""
    return f"{round(value * 100, 3):g}%"


def _opening(name: str, attributes: dict[str, str | float | None]) -> str:
    texts = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{''.join(texts)}"


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 3):g}"


def _safe(part: str) -> str:
    return part if isinstance(part, Markup) else escape(part, quote=True)
