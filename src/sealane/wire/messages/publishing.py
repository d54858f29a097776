"""Publishing: to topics, to exchanges, in transactions, and of what was staged before."""

from __future__ import annotations

import msgspec

from sealane.wire.messages.shapes import LeaseRuns, Numbered


class Publish(Numbered, tag=20):
    """The body is a batch. Answered by `Published` once it is durable."""

    topic: str
    after: int = 0
    """The call of a publish on this connection: if that one was refused this one is too, by the same error. So a
    producer can send ahead, and yet nothing is stored behind a gap."""
    sequence: int = 0
    """Of clients with an API key: how many requests of this connection were signed, with this one."""
    signature: bytes = b""
    behind: int = 0
    """The call of a publish on this connection: if that one was refused by a rate limit this one is too. So what is
    sent ahead cannot overtake what will be sent again."""


class PlacedShare(msgspec.Struct, array_like=True, gc=False):
    """Which messages of a batch went to a partition, and where they are."""

    partition: int
    first: int
    count: int
    offsets: bytes | None = None
    """Little-endian int64, one a message, where they do not simply count up from `first`."""
    rows: bytes | None = None
    """Little-endian uint32: the batch's rows; None for all of them."""


class Published(Numbered, tag=21):
    shares: list[PlacedShare]


class PublishTo(Numbered, tag=22):
    """The body is a batch. Answered by `Routed` once it is durable in every topic."""

    exchange: str
    routing_key: str
    sequence: int = 0
    signature: bytes = b""
    behind: int = 0
    """As in `Publish`."""


class Routed(Numbered, tag=23):
    topics: dict[str, list[PlacedShare]]


class Transact(Numbered, tag=24):
    """Publishes and acks, together, once under `transaction`. The body is the batches, one after another.

    Answered with a boolean: false if this transaction had been committed before.
    """

    transaction: str
    publishes: list[tuple[str, int]]
    """(topic, bytes of its batch in the body)."""
    acks: list[tuple[str, LeaseRuns]]
    """(the consumer's identity, leased messages)."""
    sequence: int = 0
    signature: bytes = b""


class Stage(Numbered, tag=25):
    """The body is a batch that is kept, durable and unseen, until `PublishStaged` names its part. Answered by `Done`.

    Its metadata says which part it is of (`producer`) and which of that part's batches (`sequence`).
    """

    topic: str
    sequence: int = 0
    signature: bytes = b""


class PublishStaged(Numbered, tag=26):
    """Publish what was staged, together, once. Answered with a boolean, as `Transact`."""

    transaction: str
    parts: list[tuple[bytes, int]]
    """(part, how many batches it has)."""
    epoch: int | None = None
    """Given: `transaction` names a writer, whose epochs count up."""


class DropStaged(Numbered, tag=27):
    """Forget what was staged."""

    parts: list[bytes]
