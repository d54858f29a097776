"""Messages as their publishers write them in JSON or MessagePack, read and checked: from bytes to the rows of a batch.

What is wrong is told with the index of its message and the field, as `messages[3].key_base64`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec

from sealane.errors import InvalidMessage, LimitExceeded
from sealane.message import PRIORITY_DEFAULT, PRIORITY_MAX, PRIORITY_MIN, Batch, Row
from sealane.node.outgoing import SECONDS_MAX, Outgoing

T = TypeVar("T")

Priority = Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)]
Ttl = Annotated[float, msgspec.Meta(gt=0, le=SECONDS_MAX)]
Delay = Annotated[float, msgspec.Meta(ge=0, le=SECONDS_MAX)]

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are no JSON or MessagePack at all, or nest without end."""

_AT = re.compile(r"^(?P<problem>.*) - at `\$\.?(?P<field>.*)`$", re.DOTALL)


class GivenMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message in JSON. Bytes that are no text are given in base64, under another name."""

    payload: str | None = None
    payload_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None
    headers: dict[str, str] | None = None
    priority: Priority = PRIORITY_DEFAULT
    ttl: Ttl | None = None
    delay: Delay = 0
    id: UUID | None = None

    def __post_init__(self) -> None:
        # Here, so that a body of a million empty objects is refused at the first of them.
        if (self.payload is None) == (self.payload_base64 is None):
            raise ValueError("has one of payload (text) and payload_base64")
        if self.key is not None and self.key_base64 is not None:
            raise ValueError("has one of key (text) and key_base64, or none")

    def payload_bytes(self) -> bytes:
        if self.payload is not None:
            return self.payload.encode()
        assert self.payload_base64 is not None, "checked when it was read"
        return _from_base64("payload_base64", self.payload_base64)

    def key_bytes(self) -> bytes | None:
        if self.key is not None:
            return self.key.encode()
        return None if self.key_base64 is None else _from_base64("key_base64", self.key_base64)


class PackedMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message in MessagePack, which has bytes."""

    payload: bytes
    key: bytes | None = None
    headers: dict[str, str] | None = None
    priority: Priority = PRIORITY_DEFAULT
    ttl: Ttl | None = None
    delay: Delay = 0
    id: UUID | None = None

    def payload_bytes(self) -> bytes:
        return self.payload

    def key_bytes(self) -> bytes | None:
        return self.key


class GivenMessages(msgspec.Struct, forbid_unknown_fields=True):
    """Several messages: the body of a request that has more than one."""

    messages: list[GivenMessage]


class _Outline(msgspec.Struct):
    """Whether a body has several messages, found out without reading them."""

    messages: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_outline = msgspec.json.Decoder(_Outline)
_one = msgspec.json.Decoder(GivenMessage)
_several = msgspec.json.Decoder(GivenMessages)


def read_messages(body: bytes) -> list[GivenMessage]:
    """The messages of a JSON body: one message object, or `{"messages": [...]}`. Raises `InvalidMessage`."""
    if read(_outline.decode, body).messages is msgspec.UNSET:
        return [read(_one.decode, body)]
    return read(_several.decode, body).messages


def read(decode: Callable[[bytes], T], data: bytes) -> T:
    """What the decoder makes of it. Raises `InvalidMessage` that names the field."""
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        raise refusal_of(error) from None
    except UNREADABLE as error:
        raise InvalidMessage("body", f"cannot be read: {error}") from None


def refusal_of(error: msgspec.ValidationError) -> InvalidMessage:
    """What can be read and is not as it should be, with the field where that is."""
    found = _AT.match(str(error))
    field, problem = (found["field"], found["problem"]) if found is not None else ("", str(error))
    return InvalidMessage(field or "body", f"is not as it should be: {problem}")


def rows_of(messages: Sequence[GivenMessage | PackedMessage], outgoing: Outgoing) -> list[Row]:
    """The messages as rows, with moments for their times. Raises `InvalidMessage` that names index and field."""
    rows = []
    for index, message in enumerate(messages):
        try:
            rows.append(
                outgoing.row(
                    message.payload_bytes(),
                    key=message.key_bytes(),
                    headers=message.headers or None,
                    priority=message.priority,
                    ttl=message.ttl,
                    delay=message.delay,
                    id=message.id,
                )
            )
        except InvalidMessage as error:
            raise InvalidMessage(f"messages[{index}].{error.field}", error.problem) from None
    return rows


def batch_of(messages: Sequence[GivenMessage | PackedMessage], outgoing: Outgoing) -> Batch:
    """One batch of them. A message that breaks a limit is named; raises `InvalidMessage` or `InvalidBatch`."""
    rows = rows_of(messages, outgoing)
    try:
        return outgoing.build(rows)
    except InvalidMessage as error:
        raise _named(rows, outgoing, error) from None


def _named(rows: Sequence[Row], outgoing: Outgoing, error: InvalidMessage) -> InvalidMessage:
    """The same error with the index of the first message that has it; as it is if it is of all of them together.

    Each step builds half of what the last one did, so that it costs no more than the batch would have.
    """
    first, stop = 0, len(rows)
    while stop - first > 1:
        middle = (first + stop) // 2
        found = _error_of(rows[first:middle], outgoing)
        if found is not None:
            stop, error = middle, found
            continue
        found = _error_of(rows[middle:stop], outgoing)
        if found is None:
            return error
        first, error = middle, found
    if error.field == "batch":
        return error
    field = f"messages[{first}].{error.field}"
    if isinstance(error, LimitExceeded):
        return LimitExceeded(field, error.limit, error.value, unit=error.unit, setting=error.setting)
    return InvalidMessage(field, error.problem)


def _error_of(rows: Sequence[Row], outgoing: Outgoing) -> InvalidMessage | None:
    try:
        outgoing.build(list(rows))
    except InvalidMessage as error:
        return error
    return None


def _from_base64(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMessage(field, "is not base64 (the standard alphabet, with its padding)") from None
