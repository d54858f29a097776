"""What is said in JSON, as the API describes it: bodies of requests and of answers, with examples."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sealane.delivery.config import (
    ATTEMPTS_MAX,
    DELAY_SECONDS_MAX,
    LEASE_SECONDS_DEFAULT,
    LEASE_SECONDS_MAX,
    Retry,
    SubscriptionConfig,
)
from sealane.node.topic_config import PARTITIONS_MAX

ANSWERED_IDS_MAX = 10_000
"""Ids in one ack or nack: as many as a pull can have."""
NUMBER_MAX = 2**63 - 1

NAME_PATTERN = r"^[A-Za-z0-9.-][A-Za-z0-9._-]{0,127}$"
PathName = Annotated[str, Path(json_schema_extra={"pattern": NAME_PATTERN})]
"""A name in a path: described here, and checked by the node, which says what is wrong with it."""
ListedDomain = Annotated[str, Path(json_schema_extra={"pattern": r"^[A-Za-z0-9._-]{1,128}$"})]
"""A domain whose content is listed: the system's own has a name that nobody else may take."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
FullName = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9._-]{1,128}/)?[A-Za-z0-9._-]{1,128}$", description="`name`, or `domain/name`.")
]
Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]


def _moment(given: Any) -> datetime:
    """From the text alone: pydantic would take numbers too, and guess whether they are seconds or milliseconds."""
    if not isinstance(given, str):
        raise ValueError("is not a text as 2026-01-31T12:00:00Z")
    return datetime.fromisoformat(given)


Moment = Annotated[datetime, BeforeValidator(_moment)]


class Shape(BaseModel):
    """Unknown fields are mistakes, and are told as such; a number is no text and a text no number."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [values]})


# --- messages -------------------------------------------------------------------------------------------------------


class GivenMessage(Shape):
    """A message to publish: `payload` as text, or any bytes as `payload_base64`."""

    model_config = example(payload="hello", key="42", headers={"region": "eu"}, priority=7, ttl=60)

    payload: str | None = None
    payload_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None
    headers: dict[str, str] | None = None
    priority: Annotated[int, Field(ge=1, le=10)] = 5
    ttl: Annotated[float, Field(gt=0, description="Seconds until it expires.")] | None = None
    delay: Annotated[float, Field(ge=0, description="Seconds until it is delivered.")] = 0
    id: Annotated[str, Field(description="A UUID. The same id is stored once.")] | None = None


class GivenMessages(Shape):
    model_config = example(messages=[{"payload": "one"}, {"payload": "two", "key": "42"}])

    messages: list[GivenMessage]


class Receipt(Shape):
    """Where a message is stored, durably."""

    id: str
    partition: int
    offset: int


class Receipts(Shape):
    model_config = example(
        receipts=[{"id": "019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718", "partition": 0, "offset": 41}],
    )

    receipts: list[Receipt]


class RoutedReceipts(Shape):
    """By topic: where an exchange has led the messages."""

    receipts: dict[str, list[Receipt]]


class Message(BaseModel):
    """A message as it is delivered. Bytes that are no UTF-8 text are in base64, under another name."""

    id: str
    payload: str | None = None
    payload_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None
    headers: dict[str, str]
    priority: int
    created: datetime
    attempt: int
    partition: int
    offset: int
    envelope_base64: str | None = None


class Pulled(Shape):
    """Messages under a lease: they come back to others at its deadline, unless they are settled before."""

    model_config = example(
        lease="k5bEEL…",
        deadline="2026-05-04T10:00:30.000000Z",
        messages=[
            {
                "id": "019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718",
                "payload": "hello",
                "key": "42",
                "headers": {"region": "eu"},
                "priority": 7,
                "created": "2026-05-04T09:59:59.123456Z",
                "attempt": 1,
                "partition": 0,
                "offset": 41,
            }
        ],
    )

    lease: str | None
    deadline: datetime | None
    messages: list[Message]


class Browsed(Shape):
    """Stored messages, which stay as they are."""

    messages: list[Message]
    next_offset: Annotated[int, Field(description="Where to go on from; the same as asked for if nothing is there.")]


# --- answers to a lease ---------------------------------------------------------------------------------------------

Ids = Annotated[
    list[str] | None,
    Field(max_length=ANSWERED_IDS_MAX, description="Which messages of the lease; all of them if not given."),
]


class Ack(Shape):
    model_config = example(ids=["019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718"])

    ids: Ids = None


class Nack(Shape):
    model_config = example(delay=5, reason="the printer is out of paper")

    ids: Ids = None
    delay: Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX)] | None = None
    reason: str | None = None


class Extend(Shape):
    model_config = example(seconds=60)

    seconds: Annotated[float, Field(gt=0, le=LEASE_SECONDS_MAX)]


class Deadline(Shape):
    deadline: datetime


# --- topics and subscriptions ---------------------------------------------------------------------------------------


class TopicSettings(Shape):
    """What is not given has the node's default, or stays as it is."""

    model_config = example(partitions=4, retention_seconds=86400)

    partitions: Annotated[int, Field(ge=1, le=PARTITIONS_MAX)] | None = None
    durable: bool | None = None
    sealed: bool | None = None
    retention_seconds: Annotated[float, Field(ge=0)] | None = None
    messages_max: Annotated[int, Field(ge=1, le=NUMBER_MAX)] | None = None
    when_full: Literal["refuse", "drop-oldest"] | None = None
    id_window_seconds: Annotated[float, Field(ge=0)] | None = None
    id_window_ids_max: Count | None = None


class Topics(Shape):
    model_config = example(topics=["invoices", "orders"])

    topics: list[str]


class RetrySettings(Shape):
    kind: Literal["exponential", "fixed"] = "exponential"
    delay_seconds: Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX)] = 1.0
    delay_seconds_max: Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX)] = 300.0
    attempts_max: Annotated[int, Field(ge=1, le=ATTEMPTS_MAX)] = 16


class Start(Shape):
    """Where to begin: a word, a moment, or offsets by partition. One of them."""

    model_config = example(at="earliest")

    at: Literal["earliest", "latest"] | None = None
    time: Annotated[Moment, Field(description="The first message made then or later.")] | None = None
    offsets: dict[Annotated[str, Field(pattern=r"^[0-9]{1,4}$")], Count] | None = None


class SubscriptionSettings(Shape):
    """A subscription that is new begins at `start`; one that exists takes a new lease and new retries."""

    model_config = example(mode="queue", start={"at": "latest"}, lease_seconds=60)

    mode: Literal["queue", "exclusive", "key-shared"] = "queue"
    start: Start = Start(at="earliest")
    lease_seconds: Annotated[float, Field(gt=0, le=LEASE_SECONDS_MAX)] = LEASE_SECONDS_DEFAULT
    filter: Annotated[str, Field(description="A WHERE expression over key, priority, created and headers.")] | None = (
        None
    )
    retry: RetrySettings = RetrySettings()

    def config(self) -> SubscriptionConfig:
        return SubscriptionConfig(self.mode, self.lease_seconds, self.filter, Retry(**self.retry.model_dump()))


class Subscription(Shape):
    name: str
    mode: str
    lease_seconds: float
    filter: str | None
    retry: RetrySettings
    depth: Annotated[int, Field(description="Messages that are not settled.")]
    leased: int
    waiting: Annotated[int, Field(description="For a retry or a delay.")]
    dying: Annotated[int, Field(description="Out of attempts, on their way to the dead letters.")]
    consumers: int
    positions: Annotated[dict[str, int], Field(description="By partition: everything below is settled.")]


class Partition(Shape):
    partition: int
    start: int
    end: int


class Topic(Shape):
    name: str
    domain: str
    settings: dict[str, Any]
    partitions: list[Partition]
    subscriptions: list[Subscription]


class Subscriptions(Shape):
    subscriptions: list[Subscription]


class Offsets(Shape):
    model_config = example(offsets={"0": 41})

    offsets: dict[str, int]


class DeadLetters(Shape):
    """The dead letters of a subscription that have not been driven back."""

    topic: str
    depth: int
    messages: list[Message]


class RedriveOrder(Shape):
    model_config = example(dry_run=True, filter="priority > 5")

    filter: str | None = None
    dry_run: bool = False
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False, description="Messages a second.")] | None = None
    messages_max: Annotated[int, Field(ge=1, le=NUMBER_MAX)] | None = None


class Redriven(Shape):
    dry_run: bool
    messages: int
    reasons: Annotated[dict[str, int], Field(description="How many by the reason for which they died.")]


# --- exchanges ------------------------------------------------------------------------------------------------------


class ExchangeSettings(Shape):
    model_config = example(kind="topic")

    kind: Literal["direct", "topic", "fanout"] = "direct"


class BindingShape(Shape):
    """What matches `key` goes to `topic`."""

    model_config = example(topic="orders", key="orders.*")

    topic: FullName
    key: str = ""


class ExchangeShape(Shape):
    name: str
    kind: str
    bindings: list[BindingShape]


class Exchanges(Shape):
    exchanges: list[ExchangeShape]


# --- transactions ---------------------------------------------------------------------------------------------------


class TransactionPublish(Shape):
    topic: FullName
    messages: list[GivenMessage]


class TransactionAck(Shape):
    topic: FullName
    subscription: Name
    lease: str
    ids: Ids = None


class TransactionOrder(Shape):
    """Publishes and acks that take effect together, once under the transaction's id."""

    model_config = example(
        publishes=[{"topic": "invoices", "messages": [{"payload": "invoice of order 42"}]}],
        acks=[{"topic": "orders", "subscription": "billing", "lease": "k5bEEL…"}],
    )

    publishes: list[TransactionPublish] = []
    acks: list[TransactionAck] = []


class TransactionOutcome(Shape):
    """`repeated`: it had been done before, and nothing changed now."""

    transaction: str
    done: bool
    repeated: bool = False


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457). `type` is `urn:sealane:` and the code of the error; more members tell programs what
    `detail` tells people.
    """

    type: str
    title: str
    status: int
    detail: str
