"""What was seen from outside the broker, in order: the only thing the oracles judge.

A message is known by its label, unique in a run and carried in its payload, so that nothing the broker does to ids or
offsets can mislead the record. Times are virtual seconds on the monotonic clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

Mode = Literal["queue", "exclusive", "key-shared", "broadcast"]


class Place(NamedTuple):
    """Where a message is: an offset of a partition of a topic."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Message:
    """A message as its producer meant it."""

    label: str
    key: str | None = None
    plain: bool = True
    """Neither prioritised nor delayed: it is delivered in its turn."""
    may_expire: bool = False
    delay: float = 0.0
    """Virtual seconds from the call for which it must not be delivered."""
    ttl: float = math.inf
    """Virtual seconds from the call after which it must not be."""
    once: bool = False
    """Sent with an id of its own or by an idempotent producer: however often it is sent, it is stored once."""


# --- publishing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublishCalled:
    producer: str
    topic: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class PublishAcked:
    producer: str
    labels: tuple[str, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """A pipelined producer was told that these are stored; it is not told where."""

    producer: str
    topic: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishRefused:
    """The broker said that nothing was published. (An outcome that no one learnt has no event.)"""

    labels: tuple[str, ...]
    error: str


# --- consuming ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribed:
    topic: str
    subscription: str
    mode: Mode = "queue"
    attempts_max: int = 16
    from_start: bool = True
    """It must see everything that the topic ever got; otherwise only what came after it was made."""
    only_key: str | None = None
    """It has a filter that takes only messages with this key."""
    settles: bool = True
    """Everything must be settled in the end. Not so when acks are automatic or the workload leaves things lying."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The consumer left in an orderly way: what it had fetched ahead went back."""

    topic: str
    subscription: str
    session: str
    leases_end: bool = False
    """What it had been handed and had not answered went back too."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The broker sent these to a consumer, which has not been handed them yet and may never be."""

    subscription: str
    session: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    """The broker handed a message to a consumer."""

    subscription: str
    session: str
    place: Place
    label: str
    attempt: int = 1
    intact: bool = True
    """The payload is the one that belongs to the label."""
    held_until: float | None = None
    """Until when no one else may get it; None: not known."""
    granted_at: float | None = None
    """When the node granted it, if that is known to be before it was handed over."""


@dataclass(frozen=True, slots=True)
class Extended:
    subscription: str
    session: str
    places: tuple[Place, ...]
    held_until: float


@dataclass(frozen=True, slots=True)
class AckCalled:
    subscription: str
    session: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class AckConfirmed:
    subscription: str
    session: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class AckRefused:
    """The broker said that these were not acknowledged, as the lease was lost."""

    subscription: str
    session: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Nacked:
    subscription: str
    session: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Dead:
    """The message was found among the dead letters of the subscription."""

    subscription: str
    place: Place
    attempts: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Redriven:
    """The dead letters of a subscription were to be driven back to it."""

    topic: str
    subscription: str
    all_of_them: bool = False
    """In the end, without faults: it was told that all of them were."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The topic says that it drops its oldest messages when full, and these were dropped."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Sought:
    """The subscription was moved: what was settled may come again. Noted before the call and after it."""

    topic: str
    subscription: str
    backwards: bool = True
    """To the beginning: nothing is skipped by it."""


# --- transactions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionCalled:
    id: str
    messages: tuple[Message, ...]
    acks: tuple[tuple[str, Place], ...] = ()
    """Subscription and place of each message that it acknowledges."""
    caller: str = ""
    """Tells calls under one id apart, which may run at the same time."""


@dataclass(frozen=True, slots=True)
class TransactionCommitted:
    id: str
    caller: str = ""
    replayed: bool = False
    """It had been committed before: nothing of this call took effect."""


@dataclass(frozen=True, slots=True)
class TransactionAborted:
    id: str
    caller: str = ""


# --- the machine ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """A new process runs. Leases that lived in the one before are over."""


@dataclass(frozen=True, slots=True)
class Reread:
    """After a commit that was refused, the partition was read again from the log. Its leases are over."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class StartFailed:
    error: str


@dataclass(frozen=True, slots=True)
class Stopped:
    how: Literal["orderly", "kill", "power"]


@dataclass(frozen=True, slots=True)
class ClockJumped:
    seconds: float


@dataclass(frozen=True, slots=True)
class Damaged:
    """A bit of synced data rotted."""

    name: str
    position: int


# --- what is there in the end ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredLost:
    """The broker says by itself that these offsets are damaged: of the messages, or of the partition's journal."""

    topic: str
    partition: int
    start: int
    stop: int
    journal: bool = False
    """What happened to the messages is partly forgotten: settled ones may come again. The messages are all there."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """The partition's log was read from `start` to `end`; a `Logged` for each message of it came before."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Logged:
    place: Place
    label: str
    intact: bool = True
    only: str | None = None
    """The one subscription that it is for: it came back from the dead letters."""


@dataclass(frozen=True, slots=True)
class Drained:
    """A consumer took all there was; these are still leased to others or wait for their time."""

    topic: str
    subscription: str
    in_flight: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Something that must stay bounded."""

    name: str
    value: float
    limit: float


Event = (
    PublishCalled
    | PublishAcked
    | Flushed
    | PublishRefused
    | Subscribed
    | SessionEnded
    | Fetched
    | Granted
    | Extended
    | AckCalled
    | AckConfirmed
    | AckRefused
    | Nacked
    | Dead
    | Redriven
    | Dropped
    | Sought
    | TransactionCalled
    | TransactionCommitted
    | TransactionAborted
    | Started
    | Reread
    | StartFailed
    | Stopped
    | ClockJumped
    | Damaged
    | DeclaredLost
    | LogRead
    | Logged
    | Drained
    | Measured
)


class Entry(NamedTuple):
    """One line of the record: when, in which life of the process, what."""

    at: float
    life: int
    event: Event

    def __str__(self) -> str:
        return f"{self.at:12.6f} life {self.life} {self.event}"


History = list[Entry]
