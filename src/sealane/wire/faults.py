"""Errors across the wire: a code and fields for programs, a text for people; the client raises the same class."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sealane import errors
from sealane.errors import SealaneError

Fault = tuple[str, str, dict[str, Any]]
"""(code, text, fields)."""


def _code(kind: type[SealaneError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


CODES: dict[str, type[SealaneError]] = {
    _code(kind): kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SealaneError)
}
"""By code: `topic-not-found` is `TopicNotFound`, and so on for each class of `sealane.errors`."""
INTERNAL = "internal"
"""The code of what a node did not expect itself; its log tells more."""


CAUSE = "cause"
"""The field that holds the fault of what an error came from, `[code, text, fields]`, where that is one of ours."""


def fault_of(error: BaseException) -> Fault:
    """What the peer is told. Of an unexpected error it learns no more than that there was one."""
    if not isinstance(error, SealaneError):
        return INTERNAL, "the node failed unexpectedly at this request; its log tells more", {}
    kind = next(kind for kind in type(error).__mro__ if _code(kind) in CODES)
    fields: dict[str, Any] = {name: value for name, value in vars(error).items() if _is_plain(value)}
    if isinstance(error.__cause__, SealaneError):
        fields[CAUSE] = list(fault_of(error.__cause__))
    return _code(kind), str(error), fields


def _is_plain(value: object) -> bool:
    """Whether msgpack can carry it, and a program at the other end can use it."""
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    if isinstance(value, tuple):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, str | float | None)


def error_of(code: str, text: str, fields: dict[str, Any]) -> SealaneError:
    """The error that a fault tells of: of the same class, with the same fields and text."""
    kind = CODES.get(code, SealaneError)
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    for name, value in fields.items():
        if name == CAUSE:
            error.__cause__ = _cause_of(value)
        elif _is_field(name):
            setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error


def _is_field(name: object) -> bool:
    """Whether an error may have a field of this name: what every exception has is not for a peer to change."""
    return (
        isinstance(name, str) and name.isidentifier() and not name.startswith("_") and not hasattr(SealaneError, name)
    )


def _cause_of(value: object) -> SealaneError | None:
    match value:
        case [str(code), str(text), dict(fields)]:
            return error_of(code, text, fields)
    return None
