"""Where reading begins, as it is written in a query or a message: `earliest`, `latest`, a moment or a position."""

from __future__ import annotations

from datetime import datetime

from sealane.errors import InvalidArgument
from sealane.node.following.position import Position
from sealane.node.starts import Start

_STARTS = "earliest, latest, a moment such as 2026-01-31T12:00:00Z, or a position such as 0:42,1:17"


def start_of(text: str) -> Start | Position:
    """Raises `InvalidArgument`."""
    if text in ("earliest", "latest"):
        return text
    if "-" in text[:5] and "T" in text.upper():
        return _moment(text)
    try:
        return Position.read(text)
    except InvalidArgument:
        raise _refusal(text) from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _refusal(text) from None
    if moment.tzinfo is None:
        raise InvalidArgument("start", f"{text[:64]!r} has no time zone; end it with Z, or with an offset (+ is %2B)")
    return moment


def _refusal(text: str) -> InvalidArgument:
    return InvalidArgument("start", f"{text[:64]!r} is neither {_STARTS}")
