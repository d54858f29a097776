"""All that a client can say over a WebSocket. `docs/websocket.md` has the same as tables, with the answers."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from sealane.delivery.config import DELAY_SECONDS_MAX, LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, Mode, Retry
from sealane.doors.http.message_shape import GivenMessage, PackedMessage
from sealane.node.attachment import REASON_CHARS_MAX

Call = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]
"""The number under which a request is answered; 0: it is not."""
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]


class Said(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    call: Call = 0


class Hello(Said, kw_only=True, tag="hello"):
    """The credential of a browser, which cannot show one in a header: the first that it says."""

    token: str
    """An API key or a token."""


class Publish(Said, kw_only=True, tag="publish"):
    topic: str
    messages: list[GivenMessage]


class PackedPublish(Said, kw_only=True, tag="publish"):
    """The same in MessagePack."""

    topic: str
    messages: list[PackedMessage]


class GivenRetry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """As `Retry`, with names."""

    kind: Literal["exponential", "fixed"] = Retry().kind
    delay_seconds: float = Retry().delay_seconds
    delay_seconds_max: float = Retry().delay_seconds_max
    attempts_max: int = Retry().attempts_max


class Subscribe(Said, kw_only=True, tag="subscribe"):
    topic: str
    subscription: str
    mode: Mode = "queue"
    start: str = "earliest"
    """For a subscription that is new: see `sealane.doors.http.starts`."""
    filter: str | None = None
    lease_seconds: float = LEASE_SECONDS_DEFAULT
    retry: GivenRetry | None = None
    """None: as the subscription has it."""
    credit: Number = 0
    auto_ack: bool = False


class Credit(Said, kw_only=True, tag="credit"):
    consumer: Number
    messages: Number


class Answering(Said, kw_only=True):
    """What answers for messages: all of a delivery, or those with these ids."""

    consumer: Number
    delivery: Number | None = None
    ids: list[UUID] | None = None

    def __post_init__(self) -> None:
        if (self.delivery is None) == (self.ids is None):
            raise ValueError("names one of delivery and ids")


class Ack(Answering, kw_only=True, tag="ack"):
    pass


class Nack(Answering, kw_only=True, tag="nack"):
    delay: Annotated[float, msgspec.Meta(ge=0, le=DELAY_SECONDS_MAX)] | None = None
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)] | None = None


class Extend(Answering, kw_only=True, tag="extend"):
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LEASE_SECONDS_MAX)]


class Unsubscribe(Said, kw_only=True, tag="unsubscribe"):
    consumer: Number


class Ping(Said, kw_only=True, tag="ping"):
    pass


Request = Hello | Publish | PackedPublish | Subscribe | Credit | Ack | Nack | Extend | Unsubscribe | Ping
JsonRequest = Hello | Publish | Subscribe | Credit | Ack | Nack | Extend | Unsubscribe | Ping
PackedRequest = Hello | PackedPublish | Subscribe | Credit | Ack | Nack | Extend | Unsubscribe | Ping
