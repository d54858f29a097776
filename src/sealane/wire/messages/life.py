"""A connection's life, from the first word to the last."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.message import Limits
from sealane.wire.messages.shapes import Message

PROTOCOL_VERSION = 1


class Hello(Message, tag=1):
    """The client's first word."""

    versions: list[int]
    """Protocol versions it speaks."""
    software: str
    """Name and version, for logs."""
    features: list[str] = msgspec.field(default_factory=list)
    """What it can do beyond the protocol's version, by name."""
    heartbeat_seconds: float = 15.0
    """The longest silence it wants; the node may choose a shorter one."""
    credentials: dict[str, Any] | None = None
    """Who it is, where the connection itself does not tell: by an API key, a user's password, or a token."""


class LimitsOffer(msgspec.Struct, array_like=True):
    """What the node takes: a client refuses the rest itself, before it is sent."""

    payload_bytes_max: int
    batch_bytes_max: int
    batch_messages_max: int
    headers_max: int
    header_bytes_max: int
    key_bytes_max: int
    name_chars_max: int

    def limits(self) -> Limits:
        return Limits(**{name: getattr(self, name) for name in self.__struct_fields__})

    @classmethod
    def of(cls, limits: Limits) -> LimitsOffer:
        return cls(*(getattr(limits, name) for name in cls.__struct_fields__))


class Welcome(Message, tag=2):
    """The node's answer to `Hello`."""

    version: int
    software: str
    node: str
    """Changes with each start of the node."""
    principal: str
    domain: str
    """Where bare topic names of this client are."""
    features: list[str]
    limits: LimitsOffer
    frame_bytes_max: int
    heartbeat_seconds: float
    """Either side speaks at least this often, and may take the other for gone after three times as long."""
    nonce: bytes = b""
    """Not empty: the node wants signatures on what carries batches, under a key made of this; see
    `sealane.wire.signing`."""


class Ping(Message, tag=3):
    """Asks for a `Pong`."""


class Pong(Message, tag=4):
    pass


class Goodbye(Message, tag=5):
    """The last word before closing, or (`code` = `draining`) the request to finish and come back elsewhere."""

    code: str
    text: str
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    """As in `Refused`."""
