"""A received message as it is kept."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Self

import msgspec


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of `message` and `message_base64` is there: the body as text, or as base64 if it is no UTF-8."""

    message_id: str
    received_at: str
    """UTC, as RFC 3339 has it."""
    message: str | None = None
    message_base64: str | None = None

    @classmethod
    def of(cls, message_id: str, body: bytes, received_at: datetime) -> Self:
        moment = received_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            return cls(message_id, moment, message=body.decode())
        except UnicodeDecodeError:
            return cls(message_id, moment, message_base64=base64.b64encode(body).decode("ascii"))

    def written(self) -> bytes:
        """Its JSON, on one line."""
        return msgspec.json.encode(self)


class _Identified(msgspec.Struct):
    message_id: str


_DECODER = msgspec.json.Decoder(_Identified)


def id_in(written: bytes | msgspec.Raw) -> str | None:
    """The id of an entry, whatever else is in it; None if it is none."""
    try:
        return _DECODER.decode(written).message_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
