"""All that can happen while messages are sent and received, for whoever wants to tell of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sealane.cipher.received import Entry


@dataclass(frozen=True, slots=True)
class Sending:
    """A message goes out; `attempt` counts from 1."""

    message_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker has stored it: the sender forgets it."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """`waiting` messages were not acknowledged, and are sent again; `attempt` counts from 2."""

    waiting: int
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message was pushed."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Stored:
    """It was decrypted, and is durable in the file."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Repeated:
    """The file has it already: it is acknowledged again, and not stored."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Undecryptable:
    """It is not acknowledged, so it will come again."""

    message_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledging:
    """The broker is told that it need not keep the message; `attempt` counts from 1."""

    message_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has forgotten the message."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """An ack was refused: the message will come again, and is acknowledged then."""

    message_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The receiver connects again by itself."""

    why: str


@dataclass(frozen=True, slots=True)
class Connected:
    """The receiver hears of messages from here on."""

    address: str


Event = (
    Sending
    | Acknowledged
    | Retrying
    | Arrived
    | Stored
    | Repeated
    | Undecryptable
    | Acknowledging
    | Confirmed
    | Unconfirmed
    | Disconnected
    | Connected
)

Tell = Callable[[Event], None]


def tell_nobody(event: Event) -> None:
    """For callers who only want the outcome."""
