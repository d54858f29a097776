"""A message as JSON, with the field names of the HTTP interface; text where it is text, else `…_base64`."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from datetime import datetime
from typing import Any, Protocol

from sealane.errors import InvalidMessage

_READ = frozenset({"payload", "payload_base64", "key", "key_base64", "headers", "priority", "ttl", "delay", "id"})
_PASSED_OVER = frozenset({"created", "attempt", "partition", "offset"})
"""What `consume --json` tells beside: its output can be published again."""


class Readable(Protocol):
    """A message that can be shown: a leased one, or one that was only looked at."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def priority(self) -> int: ...
    @property
    def created(self) -> datetime: ...
    @property
    def attempt(self) -> int | None: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


def message_object(message: Readable) -> dict[str, Any]:
    """The message, ready for JSON."""
    key, attempt = message.key, message.attempt
    return {
        "id": str(message.id),
        **_text_or_base64("payload", message.payload),
        **({"key": None} if key is None else _text_or_base64("key", key)),
        "headers": message.headers,
        "priority": message.priority,
        "created": message.created.isoformat(),
        **({} if attempt is None else {"attempt": attempt}),
        "partition": message.partition,
        "offset": message.offset,
    }


def _text_or_base64(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def read_message(line: bytes) -> dict[str, Any]:
    """What `Lane.publish` takes, from one message object as JSON. Raises `InvalidMessage`."""
    try:
        found = json.loads(line)
    except ValueError:
        raise InvalidMessage("line", "is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidMessage("line", "is not a JSON object")
    unknown = set(found) - _READ - _PASSED_OVER
    if unknown:
        raise InvalidMessage(min(unknown), f"is no field of a message; there are {', '.join(sorted(_READ))}")
    payload = _bytes(found, "payload")
    if payload is None:
        raise InvalidMessage("payload", "is missing")
    message: dict[str, Any] = {"payload": payload}
    key = _bytes(found, "key")
    if key is not None:
        message["key"] = key
    for name, kind in (("headers", dict), ("priority", int), ("ttl", int | float), ("delay", int | float), ("id", str)):
        value = found.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidMessage(name, f"is a JSON {type(value).__name__}")
        message[name] = value
    if not message.get("headers", True):
        del message["headers"]
    return message


def _bytes(found: dict[str, Any], name: str) -> bytes | None:
    text, encoded = found.get(name), found.get(f"{name}_base64")
    if text is not None and encoded is not None:
        raise InvalidMessage(name, f"is there twice, as {name} and as {name}_base64")
    for value in (text, encoded):
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(name, "must be text")
    if encoded is None:
        return None if text is None else str(text).encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMessage(f"{name}_base64", "is not base64") from None
