"""What can happen to a partition's messages. The journal is a log of these, and all lasting state is their fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.offsets import Packed


class Published(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A batch took the offsets [base, base + count)."""

    base: int
    count: int
    time_us: int
    plain: bool = True
    """Nothing in it expires, is delayed or has a priority of its own: delivery need not look inside."""
    producer: bytes | None = None
    sequence: int | None = None
    ids: bytes | None = None
    """The ids that the caller gave, 16 bytes each: they enter the id window."""
    only: str | None = None
    """The one subscription that it is for; the others pass over it."""

    @property
    def lasting(self) -> bool:
        """Whether a fold needs it. That a plain batch is there is known from the end of the log."""
        return not self.plain or self.ids is not None or self.producer is not None


class Subscribed(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A subscription exists from here on, and has everything below `floor` behind it."""

    subscription: str
    config: SubscriptionConfig
    floor: int


class Unsubscribed(msgspec.Struct, frozen=True, array_like=True, tag=3):
    subscription: str


class Configured(msgspec.Struct, frozen=True, array_like=True, tag=4):
    subscription: str
    config: SubscriptionConfig


class Granted(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A consumer holds these messages until the deadline."""

    subscription: str
    lease: int
    consumer: str
    offsets: Packed
    time_us: int
    deadline_us: int
    bound: bool = True
    """Bound leases end with their connection and with a restart; others live to their deadline."""


class Acked(msgspec.Struct, frozen=True, array_like=True, tag=6):
    subscription: str
    lease: int
    offsets: Packed
    time_us: int


FailureCause = Literal["nack", "lease expired", "connection ended"]


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """An attempt failed; the messages come back at `due_us`, or are dead if that was the last one."""

    subscription: str
    lease: int
    offsets: Packed
    time_us: int
    due_us: int
    cause: FailureCause
    reason: str | None = None


class Released(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Given back unhandled: ready again, no attempt counted."""

    subscription: str
    lease: int
    offsets: Packed


class Extended(msgspec.Struct, frozen=True, array_like=True, tag=9):
    subscription: str
    lease: int
    deadline_us: int


class DeadLettered(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Moved to the dead-letter topic, in the same commit."""

    subscription: str
    offsets: Packed
    time_us: int


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=11):
    subscription: str
    offsets: Packed
    time_us: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Given up to the topic's length limit, which the topic asked for."""

    subscription: str
    offsets: Packed
    time_us: int


class Sought(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """The subscription starts again from `offset`: everything below is behind it, nothing above is settled."""

    subscription: str
    offset: int
    time_us: int


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """The engine found [start, stop) damaged; nobody can have these messages any more."""

    start: int
    stop: int
    time_us: int


class TransactionDone(msgspec.Struct, frozen=True, array_like=True, tag=15):
    transaction: str
    time_us: int


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """Everything before, folded."""

    state: bytes


class Advanced(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """A reader that keeps its own position has everything below `offset` behind it, whoever holds some of that."""

    subscription: str
    offset: int
    time_us: int


class BatchStaged(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """A batch for `topic` is kept at [base, base + count) until its part is published: it is no message of this log."""

    part: bytes
    number: int
    """Which of its part's batches it is, from 0."""
    topic: str
    base: int
    count: int
    nbytes: int
    time_us: int
    given_ids: bool = False
    """Its ids came from the caller: they enter the topic's id window when it is published."""


class PartsEnded(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """What was staged in these parts was published, dropped or is too old."""

    parts: list[bytes]
    time_us: int


class PublishDecided(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """Parts are published from here on, in this order and whatever happens; the first `messages` of them are."""

    transaction: str
    epoch: int | None
    parts: list[bytes]
    topics: dict[str, int]
    """The incarnation of each topic that messages are for: one that is made again gets none of them."""
    messages: int
    time_us: int


class PublishAdvanced(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Of a publish that was decided, the first `messages` are published now."""

    transaction: str
    epoch: int | None
    messages: int


class EpochDone(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """A writer has published everything up to this epoch."""

    writer: str
    epoch: int
    time_us: int


StagingEvent = BatchStaged | PartsEnded | PublishDecided | PublishAdvanced

Event = (
    Published
    | Subscribed
    | Unsubscribed
    | Configured
    | Granted
    | Acked
    | Failed
    | Released
    | Extended
    | DeadLettered
    | Expired
    | Dropped
    | Sought
    | Lost
    | TransactionDone
    | Snapshot
    | Advanced
    | StagingEvent
    | EpochDone
)

SubscriptionEvent = (
    Granted | Acked | Failed | Released | Extended | DeadLettered | Expired | Dropped | Sought | Advanced | Configured
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


def encode_events(events: Sequence[Event]) -> bytes:
    """One journal entry."""
    return _encoder.encode(events)


def decode_events(entry: bytes) -> list[Event]:
    return _decoder.decode(entry)
