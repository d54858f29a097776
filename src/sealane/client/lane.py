"""A lane: a user's connection to a broker. Everything in the Python contract starts from here."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa
from pyroaring import BitMap64

from sealane.client.answers import Answers
from sealane.client.asking import TIMEOUT_SECONDS as TIMEOUT_SECONDS
from sealane.client.broker import Broker, Hold, LaneConsumer
from sealane.client.coalescing import Coalescer, size_of_few
from sealane.client.consumer import Attach, BatchConsumption, Consumption, MessageConsumption
from sealane.client.managing import Managing
from sealane.client.producer import Producer
from sealane.client.raw_logs import RawLogs
from sealane.client.sealing import SealFor, Sealing
from sealane.client.staging import Staging
from sealane.client.topic_schemas import TopicSchema
from sealane.client.transaction import Transaction
from sealane.client.unsealing import Keys, unsealing
from sealane.client.window import GROWTH_MAX, Window
from sealane.delivery.config import LEASE_SECONDS_DEFAULT, Mode, Retry, SubscriptionConfig
from sealane.errors import Closed, InvalidArgument, SchemaMismatch, SchemaNotFound
from sealane.message import Batch, Row
from sealane.node.outgoing import Outgoing
from sealane.node.receipts import Receipt, Receipts
from sealane.node.starts import Start
from sealane.security.envelopes import PublicKey

T = TypeVar("T")

CLOSE_SECONDS = 5.0
PREFETCH_DEFAULT = 1_000


class Lane(Managing, RawLogs, Staging):
    """Made by `sealane.connect` or `sealane.embedded`. Use it in `async with`; closing ends its consumers, and their
    leases with them.
    """

    def __init__(
        self,
        broker: Broker[Any],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        explain: Callable[[], str | None] | None = None,
    ) -> None:
        super().__init__(broker, timeout_seconds, explain)
        self.outgoing = Outgoing(broker.limits, broker.surroundings)
        self._coalescers: dict[tuple[str, bool], Coalescer] = {}
        self._sealing = Sealing(self.outgoing, self.administer, self._broker.hand_over, timeout_seconds)
        self._consumptions: weakref.WeakSet[Consumption[Any]] = weakref.WeakSet()
        self._answers: weakref.WeakSet[Answers] = weakref.WeakSet()
        """Those of consumers that have ended too: what they handed out may still be answered."""
        self._holds: weakref.WeakSet[Hold] = weakref.WeakSet()

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        priority: int = 5,
        ttl: float | None = None,
        delay: float = 0,
        id: uuid.UUID | str | bytes | None = None,
        seal_for: SealFor | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Returns when the message is durable. A repeated `id` is stored once and gets the first one's receipt.

        `seal_for` seals the payload for recipients, end to end; its key and headers stay readable for the node.
        """
        if self._closed:
            self._check_open()
        row = self.outgoing.row(payload, key=key, headers=headers, priority=priority, ttl=ttl, delay=delay, id=id)
        if seal_for is not None:
            return await self._publish_sealed(topic, row, seal_for, given_id=id is not None, timeout=timeout)
        durable = self._coalescer(topic, given_id=id is not None).add(row)
        return await (durable if timeout is None else self._within(durable, timeout, "publish"))

    async def _publish_sealed(
        self, topic: str, row: Row, seal_for: SealFor, *, given_id: bool, timeout: float | None, again: bool = True
    ) -> Receipt:
        gathering = self._sealing.coalescer(topic, seal_for, given_id=given_id)
        durable = (await self._within(gathering, timeout, "publish")).add(row)
        try:
            return await (durable if timeout is None else self._within(durable, timeout, "publish"))
        except (SchemaMismatch, SchemaNotFound):
            if not again or not await self._sealing.schemas.have_changed(topic):
                raise
        # It was checked by a schema that was given up, or by none before there was one.
        return await self._publish_sealed(topic, row, seal_for, given_id=given_id, timeout=timeout, again=False)

    async def publish_many(
        self,
        topic: str,
        messages: Sequence[bytes] | pa.RecordBatch | pa.Table,
        *,
        seal_for: SealFor | None = None,
        timeout: float | None = None,
    ) -> Sequence[Receipt]:
        """Publish payloads, or an Arrow table whose missing columns are filled. Returns when all are durable.

        What does not fit one batch is published as several, in order; if one is refused those before it are stored.
        Small ones that are published at the same time share a batch, and are each stored or refused as a whole.
        """
        self._check_open()
        if seal_for is None:
            coalescer = self._coalescer(topic)
            gathers = timeout is None or timeout <= self._timeout_seconds
            if gathers and (size := size_of_few(messages)) is not None:
                # A copy: the caller may go on with its list before they are built.
                durable = coalescer.add_many(tuple(messages), size)
                return await (durable if timeout is None else self._within(durable, timeout, "publish_many"))
            coalescer.flush()
        receipts: list[Receipts] = []
        try:
            await self._publish_batches(topic, messages, seal_for, timeout, receipts)
        except (SchemaMismatch, SchemaNotFound):
            if receipts or seal_for is None or not await self._sealing.schemas.have_changed(topic):
                raise
            await self._publish_batches(topic, messages, seal_for, timeout, receipts)
        return receipts[0] if len(receipts) == 1 else [receipt for some in receipts for receipt in some]

    async def _publish_batches(
        self,
        topic: str,
        messages: Sequence[bytes] | pa.RecordBatch | pa.Table,
        seal_for: SealFor | None,
        timeout: float | None,
        receipts: list[Receipts],
    ) -> None:
        """One after the other; `receipts` gets those of what is stored."""
        outgoing = await self.outgoing_for(seal_for, topic)
        for batch in outgoing.batches(messages):
            receipts.append(await self._within(self._broker.publish(topic, batch), timeout, "publish_many"))

    async def publish_to(
        self,
        exchange: str,
        routing_key: str,
        payload: bytes,
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        priority: int = 5,
        ttl: float | None = None,
        delay: float = 0,
        id: uuid.UUID | str | bytes | None = None,
        seal_for: SealFor | None = None,
        timeout: float | None = None,
    ) -> dict[str, Receipt]:
        """Publish to every topic that the exchange's bindings give for this routing key, together.

        Raises `Unroutable`, and stores nothing, if there is none. Returns the receipts by topic.
        """
        self._check_open()
        row = self.outgoing.row(payload, key=key, headers=headers, priority=priority, ttl=ttl, delay=delay, id=id)
        batch = (await self.outgoing_for(seal_for)).build([row])
        publishing = self._broker.publish_to_exchange(exchange, routing_key, batch)
        receipts = await self._within(publishing, timeout, "publish_to")
        return {topic: some[0] for topic, some in receipts.items()}

    def producer(self, topic: str, *, seal_for: SealFor | None = None) -> Producer:
        """A pipelined producer: `async with lane.producer("orders") as producer: await producer.send(b"...")`."""
        self._check_open()

        async def publish(batch: Batch) -> Receipts:
            self._check_open()
            with self._forgetting_schemas(topic):
                return await self._within(self._broker.publish(topic, batch), None, "producer")

        prepare = None if seal_for is None else partial(self._sealing.outgoing, seal_for, topic)
        return Producer(self.outgoing, publish, self._broker.surroundings.entropy(16), prepare)

    def transaction(self, id: str) -> Transaction:
        """Publishes and acks that become visible together, once under `id`."""
        self._check_open()
        return Transaction(self, id)

    # --- consuming ----------------------------------------------------------------------------------------------------

    def consume(
        self,
        topic: str,
        subscription: str,
        *,
        mode: Mode = "queue",
        start: Start = "earliest",
        filter: str | None = None,
        auto_ack: bool = False,
        prefetch: int | None = None,
        lease_seconds: float = LEASE_SECONDS_DEFAULT,
        retry: Retry | None = None,
        keys: Keys | None = None,
        require_sealed: bool = False,
    ) -> MessageConsumption:
        """Messages one by one: `async for message in lane.consume("orders", subscription="billing")`.

        The subscription is created if it is new, and stays when the loop ends. `prefetch` messages are fetched ahead;
        unless it is given, as many as the loop's pace asks for, 1,000 or more. `keys` open what was sealed for them,
        end to end; reading the payload of a message that they do not open raises `CannotOpen`.
        """
        attach = self._attaching(topic, subscription, mode, start, filter, lease_seconds, retry, auto_ack)
        window = _window(PREFETCH_DEFAULT, prefetch)
        consumption = MessageConsumption(
            attach,
            self._consumer_id(),
            window,
            auto_ack=auto_ack,
            lease_seconds=lease_seconds,
            unsealing=unsealing(keys, require_sealed=require_sealed),
        )
        self._consumptions.add(consumption)
        return consumption

    def consume_batches(
        self,
        topic: str,
        subscription: str,
        *,
        messages_max: int = 10_000,
        mode: Mode = "queue",
        start: Start = "earliest",
        filter: str | None = None,
        auto_ack: bool = False,
        prefetch: int | None = None,
        lease_seconds: float = LEASE_SECONDS_DEFAULT,
        retry: Retry | None = None,
        keys: Keys | None = None,
        require_sealed: bool = False,
    ) -> BatchConsumption:
        """The same in batches of at most `messages_max`, without an object for each message. Two batches are fetched
        ahead, and more where the loop is fast, unless `prefetch` says how many messages.
        """
        attach = self._attaching(topic, subscription, mode, start, filter, lease_seconds, retry, auto_ack)
        if messages_max < 1:
            raise InvalidArgument("messages_max", f"{messages_max} is not at least 1")
        window = _window(2 * messages_max, prefetch)
        consumption = BatchConsumption(
            attach,
            self._consumer_id(),
            window,
            auto_ack=auto_ack,
            lease_seconds=lease_seconds,
            unsealing=unsealing(keys, require_sealed=require_sealed),
            messages_max=messages_max,
        )
        self._consumptions.add(consumption)
        return consumption

    def _attaching(
        self,
        topic: str,
        subscription: str,
        mode: Mode,
        start: Start,
        filter: str | None,
        lease_seconds: float,
        retry: Retry | None,
        auto_ack: bool,
    ) -> Attach:
        self._check_open()
        config = SubscriptionConfig(mode, lease_seconds, filter, retry or Retry())

        async def attach(consumer: LaneConsumer) -> Answers:
            self._check_open()
            attaching = self._broker.attach(topic, subscription, config, start, consumer, keep_retry=retry is None)
            hold = await self._within(attaching, None, "consume")
            answers = Answers(hold, auto_ack=auto_ack)
            self._holds.add(hold)
            self._answers.add(answers)
            return answers

        return attach

    # --- keys ---------------------------------------------------------------------------------------------------------

    async def register_key(
        self, public_key: PublicKey, name: str | None = None, *, comment: str = ""
    ) -> dict[str, Any]:
        """Let senders find this key under one's own name, or, for who administers the node, under another one's."""
        return await self.administer("directory.register", public_key=public_key.pem(), name=name, comment=comment)

    async def public_keys(self, name: str) -> list[PublicKey]:
        """The keys of a recipient, from the node's directory. Raises `RecipientNotFound`."""
        return await self._sealing.public_keys(name)

    # --- within the package -------------------------------------------------------------------------------------------

    def _coalescer(self, topic: str, *, given_id: bool = False) -> Coalescer:
        """What gathers what is published to the topic in small pieces."""
        coalescer = self._coalescers.get((topic, given_id))
        if coalescer is None:
            hand_over = partial(self._broker.hand_over, topic)
            coalescer = Coalescer(self.outgoing, hand_over, self._timeout_seconds)
            self._coalescers[topic, given_id] = coalescer
        return coalescer

    async def outgoing_for(self, seal_for: SealFor | None, topic: str | None = None) -> Outgoing:
        """What builds batches for these recipients, or for everyone; what is sealed is checked for the topic before."""
        return self.outgoing if seal_for is None else await self._sealing.outgoing(seal_for, topic)

    async def schema_of(self, topic: str) -> TopicSchema | None:
        """What has to be checked before it is sealed; None if nothing has."""
        return await self._sealing.schemas.of(topic)

    @contextlib.contextmanager
    def _forgetting_schemas(self, *topics: str) -> Iterator[None]:
        """What the node refuses was perhaps checked by a schema that was given up: the next is asked for again."""
        try:
            yield
        except (SchemaMismatch, SchemaNotFound):
            for topic in topics:
                self._sealing.schemas.forget(topic)
            raise

    async def commit_transaction(
        self,
        id: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Hold, int, int, BitMap64]],
    ) -> bool:
        """What a `Transaction` does at the end of its block."""
        self._check_open()
        with self._forgetting_schemas(*(topic for topic, _ in publishes)):
            return await self._within(self._broker.transact(id, publishes, acks), None, "transaction")

    # --- life ---------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the consumers: fetched messages go back, and so do those handed out and not answered.

        Waits for the node at most `CLOSE_SECONDS`: what it has not heard by then, it learns when leases end.
        """
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._end_consumers()

    def abandon(self) -> None:
        """Close without a wait: the broker is told what goes back, and learns the rest when the connection ends."""
        self._closed = True
        for consumption in list(self._consumptions):
            consumption.abandon(Closed("the lane is closed"))
        for answers in list(self._answers):
            answers.close()

    async def _end_consumers(self) -> None:
        for consumption in list(self._consumptions):
            await consumption.shut()
        for answers in list(self._answers):
            answers.close()
        for hold in list(self._holds):
            await hold.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _consumer_id(self) -> str:
        return self._broker.surroundings.entropy(8).hex()


def _window(size: int, prefetch: int | None) -> Window:
    """Of the size that was asked for; where none was, one that follows the consumer's pace."""
    if prefetch is None:
        return Window(size, GROWTH_MAX)
    if prefetch < 1:
        raise InvalidArgument("prefetch", f"{prefetch} is not at least 1")
    return Window(prefetch)
