"""Consuming: who takes part in a subscription, what is delivered, and what became of it."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.wire.messages.shapes import LeaseRuns, Message, Numbered, Runs, StartPoint


class Attach(Numbered, tag=30):
    """Take part in a subscription, which is made if it is new. Answered by `Attached`."""

    consumer: int
    """How both sides call this consumer on this connection."""
    identity: str
    """The consumer's name in the node: unique, random, chosen by the client."""
    topic: str
    subscription: str
    config: SubscriptionConfig
    start: StartPoint = "earliest"
    keep_retry: bool = False
    credit: int = 0


class Attached(Numbered, tag=31):
    positions: dict[int, int]
    """By partition: the first offset this consumer may get. What a broadcast consumer resumes from."""


class Credit(Message, tag=32):
    """The consumer can take so many messages more."""

    consumer: int
    messages: int


class Deliver(msgspec.Struct, tag=33, array_like=True):
    """Messages of one lease. The body is batches, one after another."""

    consumer: int
    topic: str
    partition: int
    lease: int
    deadline_us: int
    parts: list[tuple[int, int, int, bytes | None]]
    """(first offset, messages, bytes of the batch in the body, offsets as little-endian int64 if they do not count
    up)."""
    attempts: list[tuple[Runs, int]] = []
    """Messages that are not at their first attempt, and at which they are."""


class Revoke(msgspec.Struct, tag=34, array_like=True):
    """Leased messages that are no longer the consumer's: to be dropped if they were not handled yet."""

    consumer: int
    partition: int
    lease: int
    runs: Runs


class Ended(msgspec.Struct, tag=35, array_like=True):
    """Nothing will come for this consumer any more."""

    consumer: int
    code: str
    text: str
    fields: dict[str, Any] = {}


class Settle(msgspec.Struct, tag=40, array_like=True):
    """Acks that nobody waits for."""

    consumer: int
    leases: list[LeaseRuns]


class Ack(Numbered, tag=41):
    """An ack whose answer means that it is durable."""

    consumer: int
    lease: LeaseRuns


class Nack(Numbered, tag=42):
    """With `call` 0 nobody waits for it."""

    consumer: int
    lease: LeaseRuns
    delay: float | None = None
    reason: str | None = None


class Extend(Numbered, tag=43):
    """Answered with the new deadline, in µs since 1970."""

    consumer: int
    lease: LeaseRuns
    seconds: float


class Release(msgspec.Struct, tag=44, array_like=True):
    """Messages that were not handled go back, without counting an attempt."""

    consumer: int
    leases: list[LeaseRuns]


class Leave(msgspec.Struct, tag=45, array_like=True):
    """Deliver no more; these were not handled. What was handled may still be answered."""

    consumer: int
    unhandled: list[LeaseRuns]


class Detach(Numbered, tag=46):
    """Leave, and answer when it is done. With `end`, what is still leased goes back too."""

    consumer: int
    end: bool = False
