"""Everything two peers can say to each other. On the wire each is a msgpack array that begins with its tag.

Fields are only ever added at the end, with a default: a peer ignores those that it does not know.

`call` numbers a request within its connection, from 1; the answer carries the same number. Requests are pipelined:
answers may come in another order. Offsets travel as ascending runs, `[start, stop, start, stop, …]`, half-open.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.message import Limits

PROTOCOL_VERSION = 1

Runs = list[int]
"""Offsets as ascending, half-open runs; see `sealane.wire.runs`."""
StartPoint = str | dict[int, int] | int
"""`"earliest"`, `"latest"`, offsets by partition, or a moment in µs since 1970."""


class _Message(msgspec.Struct, array_like=True, gc=False):
    pass


class _Request(msgspec.Struct, array_like=True):
    call: int


# --- a connection's life --------------------------------------------------------------------------------------------


class Hello(_Message, tag=1):
    """The client's first word."""

    versions: list[int]
    """Protocol versions it speaks."""
    software: str
    """Name and version, for logs."""
    features: list[str] = []
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


class Welcome(_Message, tag=2):
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


class Ping(_Message, tag=3):
    """Asks for a `Pong`."""


class Pong(_Message, tag=4):
    pass


class Goodbye(_Message, tag=5):
    """The last word before closing, or (`code` = `draining`) the request to finish and come back elsewhere."""

    code: str
    text: str
    fields: dict[str, Any] = {}
    """As in `Refused`."""


# --- answers to requests --------------------------------------------------------------------------------------------


class Done(_Request, tag=10):
    pass


class Answer(_Request, tag=11):
    """What was asked for; its shape belongs to the request."""

    value: msgspec.Raw


class Refused(_Request, tag=12):
    """The request failed. `code` and `fields` say it to programs, `text` to people; see `sealane.wire.faults`."""

    code: str
    text: str
    fields: dict[str, Any] = {}


class Progress(_Request, tag=13):
    """A long request goes on; `total` is 0 when unknown."""

    done: int
    total: int = 0


# --- publishing -----------------------------------------------------------------------------------------------------


class Publish(_Request, tag=20):
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


class Published(_Request, tag=21):
    shares: list[PlacedShare]


class PublishTo(_Request, tag=22):
    """The body is a batch. Answered by `Routed` once it is durable in every topic."""

    exchange: str
    routing_key: str
    sequence: int = 0
    signature: bytes = b""
    behind: int = 0
    """As in `Publish`."""


class Routed(_Request, tag=23):
    topics: dict[str, list[PlacedShare]]


class LeaseRuns(msgspec.Struct, array_like=True):
    """Leased messages; `runs` None: all of the lease."""

    partition: int
    lease: int
    runs: Runs | None = None


class Transact(_Request, tag=24):
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


class Stage(_Request, tag=25):
    """The body is a batch that is kept, durable and unseen, until `PublishStaged` names its part. Answered by `Done`.

    Its metadata says which part it is of (`producer`) and which of that part's batches (`sequence`).
    """

    topic: str
    sequence: int = 0
    signature: bytes = b""


class PublishStaged(_Request, tag=26):
    """Publish what was staged, together, once. Answered with a boolean, as `Transact`."""

    transaction: str
    parts: list[tuple[bytes, int]]
    """(part, how many batches it has)."""
    epoch: int | None = None
    """Given: `transaction` names a writer, whose epochs count up."""


class DropStaged(_Request, tag=27):
    """Forget what was staged."""

    parts: list[bytes]


# --- consuming ------------------------------------------------------------------------------------------------------


class Attach(_Request, tag=30):
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


class Attached(_Request, tag=31):
    positions: dict[int, int]
    """By partition: the first offset this consumer may get. What a broadcast consumer resumes from."""


class Credit(_Message, tag=32):
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


class Ack(_Request, tag=41):
    """An ack whose answer means that it is durable."""

    consumer: int
    lease: LeaseRuns


class Nack(_Request, tag=42):
    """With `call` 0 nobody waits for it."""

    consumer: int
    lease: LeaseRuns
    delay: float | None = None
    reason: str | None = None


class Extend(_Request, tag=43):
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


class Detach(_Request, tag=46):
    """Leave, and answer when it is done. With `end`, what is still leased goes back too."""

    consumer: int
    end: bool = False


# --- topics, subscriptions, exchanges, the node ---------------------------------------------------------------------


class CreateTopic(_Request, tag=50):
    topic: str
    config: dict[str, Any]


class ConfigureTopic(_Request, tag=51):
    topic: str
    changes: dict[str, Any]


class DeleteTopic(_Request, tag=52):
    topic: str


class ListTopics(_Request, tag=53):
    """Answered with their full names, in order."""


class DescribeTopic(_Request, tag=54):
    topic: str


class Unsubscribe(_Request, tag=60):
    topic: str
    subscription: str


class Seek(_Request, tag=61):
    """Answered with the offsets by partition."""

    topic: str
    subscription: str
    start: StartPoint


class Redrive(_Request, tag=62):
    """Answered with `[dry_run, messages, {reason: messages}]`, after any number of `Progress`."""

    topic: str
    subscription: str
    filter: str | None = None
    dry_run: bool = False
    rate: float | None = None
    messages_max: int | None = None


class Advance(_Request, tag=63):
    """Settle everything below these offsets, by partition, for a reader that keeps its own position."""

    topic: str
    subscription: str
    positions: dict[int, int]


class DeclareExchange(_Request, tag=70):
    exchange: str
    kind: str = "direct"


class Bind(_Request, tag=71):
    exchange: str
    topic: str
    routing_key: str


class Unbind(_Request, tag=72):
    exchange: str
    topic: str
    routing_key: str


class ListExchanges(_Request, tag=73):
    """Answered with `{name: [kind, [[routing key, topic], …]]}`."""


class Browse(_Request, tag=80):
    """Stored messages as they are, from an offset, without leasing anything. Answered by `Browsed`."""

    topic: str
    partition: int
    offset: int
    bytes_max: int = 1 << 20
    incarnation: int | None = None
    """Given: refused with `topic-not-found` if the topic was deleted and made again since."""
    stop: int | None = None
    """Given: no batch that begins there or later is of use."""


class Browsed(_Request, tag=81):
    """The body is batches, one after another; no part: the end of the log."""

    parts: list[tuple[int, int, int, bytes | None]]


class DescribeLogs(_Request, tag=82):
    """What there is to read of topics, by names and patterns. Answered with `[[name, incarnation, [[partition, start,
    end, at], …]], …]`, in order of the names.
    """

    topics: list[str]
    at_us: int | None = None
    """A moment in µs since 1970: `at` says where the messages begin that were created then or later."""


class Status(_Request, tag=90):
    """Answered with the node's status."""

    topics_max: int = 1_000


class Backup(_Request, tag=91):
    """Copy the node's data into a directory of the node's machine. Answered with a report, after `Progress`."""

    target: str
    include_key: bool = True


class Administer(_Request, tag=92):
    """A command of the node's administration, by name. Answered with its outcome, after any number of `Progress`."""

    command: str
    arguments: dict[str, Any] = {}


Request = (
    Publish
    | PublishTo
    | Transact
    | Stage
    | PublishStaged
    | DropStaged
    | Attach
    | Ack
    | Nack
    | Extend
    | Detach
    | CreateTopic
    | ConfigureTopic
    | DeleteTopic
    | ListTopics
    | DescribeTopic
    | Unsubscribe
    | Seek
    | Advance
    | Redrive
    | DeclareExchange
    | Bind
    | Unbind
    | ListExchanges
    | Browse
    | DescribeLogs
    | Status
    | Backup
    | Administer
)
"""What a client asks and a node answers."""
Note = Credit | Settle | Release | Leave
"""What a client tells without waiting."""
Reply = Done | Answer | Refused | Published | Routed | Attached | Browsed
"""What ends a request."""
News = Deliver | Revoke | Ended | Progress
"""What a node tells without being asked, or before it has answered."""
Life = Hello | Welcome | Ping | Pong | Goodbye

ToNode = Hello | Ping | Pong | Goodbye | Request | Note
ToClient = Welcome | Ping | Pong | Goodbye | Reply | News
AnyMessage = ToNode | ToClient
