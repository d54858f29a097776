"""A JSON Schema that checks payloads: compiled once, by a library whose regular expressions take linear time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sealane.schemas.json.compiling import compiled
from sealane.schemas.json.containment import Containment
from sealane.schemas.json.depth import JSON_DEPTH_MAX, depth
from sealane.schemas.json.document import Document
from sealane.schemas.json.locating import locate
from sealane.schemas.paths import path_of
from sealane.schemas.schema import Misfit, Problem

FRACTION_LARGEST = 1e15
"""Where numbers are to be multiples of a fraction, larger ones are refused: a double of that size has none any more,
and finding that out takes twenty times as long."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError)


class JsonSchema:
    """Drafts 6, 7, 2019-09 and 2020-12; without `$schema` it is the last."""

    format = "json"

    def __init__(self, text: str) -> None:
        """Raises `InvalidSchema`."""
        self._document = Document(text)
        self.identity = msgspec.json.encode(self._document.root, order="sorted")
        self._is_valid: Callable[[Any], bool] = compiled(self._document.root).is_valid
        self._decode = _decoder(self._document).decode

    @property
    def root(self) -> Any:
        """The document."""
        return self._document.root

    def check(self, payloads: Sequence[bytes]) -> Misfit | None:
        decode, is_valid = self._decode, self._is_valid
        for index, payload in enumerate(payloads):
            if len(payload) > JSON_DEPTH_MAX and _is_too_deep(payload):
                return Misfit(index, "$", f"its lists and objects are nested more than {JSON_DEPTH_MAX} deep")
            try:
                value = decode(payload)
            except _UNREADABLE as error:
                return Misfit(index, "$", _unreadable(error))
            if not is_valid(value):
                steps, problem = locate(self._document, self.identity, value)
                return Misfit(index, path_of(steps), problem)
        return None

    def cannot_read(self, written: JsonSchema, *, checks: bool) -> list[Problem]:
        return Containment(self._document, written._document).problems()


def _decoder(document: Document) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(float_hook=_small_number) if document.has_fractions else msgspec.json.Decoder()


def _small_number(text: str) -> float:
    number = float(text)
    if not -FRACTION_LARGEST <= number <= FRACTION_LARGEST:
        raise ValueError("a number is too large to be a multiple of a fraction")
    return number


def _is_too_deep(payload: bytes) -> bool:
    return payload.count(b"[") + payload.count(b"{") > JSON_DEPTH_MAX and depth(payload) > JSON_DEPTH_MAX


def _unreadable(error: Exception) -> str:
    """Where reading stopped, and nothing of what is there."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8, as JSON is"
    if isinstance(error, msgspec.DecodeError):
        # The library says what is wrong and at which byte; what it calls a character is a number at most.
        return f"it is no JSON: {error}"
    return "it has a number that cannot be checked"
