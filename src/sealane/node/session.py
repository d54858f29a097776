"""A session: the commands of one principal, from whichever door or from within the process.

Every command passes here: its names are read in the principal's domain, it is authorised, and then it is the node's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.engine import Stored
from sealane.errors import Closed, InvalidArgument, InvalidBatch
from sealane.message import Batch, Limits, check_name, decode, split_topic
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer
from sealane.node.describe import TopicDescription, describe_topic
from sealane.node.node import Node
from sealane.node.principals import Action, Principal, authorise
from sealane.node.publishing import Publishing
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveReport
from sealane.node.starts import Start
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus, node_status
from sealane.node.surroundings import Surroundings
from sealane.node.topic_config import TopicConfig
from sealane.routing.exchanges import Exchange, ExchangeKind

PRODUCER_BYTES_MAX = 64
"""A producer's identity in a batch from outside: a partition remembers thousands of them."""


class Session:
    """Made by `Gate.enter`, or for the broker in a process by itself with the principal `ADMIN`."""

    def __init__(self, node: Node, principal: Principal) -> None:
        self._node = node
        self.principal = principal
        self._in_line: dict[str, asyncio.Task[Receipts]] = {}
        """By topic: the last publish that waits for the topic to be made; later ones go behind it."""

    @property
    def limits(self) -> Limits:
        return self._node.settings.limits

    @property
    def surroundings(self) -> Surroundings:
        return self._node.surroundings

    def _allow(self, action: Action, name: str) -> str:
        """The full name, if the principal may do this to it."""
        domain, bare = split_topic(name, self.principal.domain)
        if bare.startswith("_") and action != "consume":
            check_name("topic", bare, self.limits)  # The system's names are for reading.
        full_name = f"{domain}/{bare}"
        authorise(self.principal, action, full_name)
        return full_name

    # --- publishing ---------------------------------------------------------------------------------------------------

    def open_batch(self, data: bytes | memoryview) -> Batch:
        """A batch that came from outside as bytes: everything in it is checked before anything trusts it."""
        batch = decode(data, limits=self.limits)
        meta = batch.meta
        if meta.only is not None:
            raise InvalidBatch("its metadata addresses one subscription, which only the node itself may do")
        if meta.producer is not None and len(meta.producer) > PRODUCER_BYTES_MAX:
            raise InvalidBatch(f"its producer id has {len(meta.producer)} bytes, the limit is {PRODUCER_BYTES_MAX}")
        return batch

    def publish(self, topic: str, batch: Batch) -> asyncio.Future[Receipts]:
        """Hand the batch over in this moment: batches for one topic are stored in the order of these calls.

        The future resolves when every message is durable; refusals come through it too.
        """
        durable: asyncio.Future[Receipts] = asyncio.get_running_loop().create_future()
        try:
            name = self._allow("publish", topic)
            publishing = None if name in self._in_line else self._node.start_publish(name, batch)
        except Exception as error:
            durable.set_exception(error)
            return durable
        if publishing is None:
            return self._publish_in_line(name, batch)
        if publishing.commit is None or publishing.repeats:
            return _spawn(_durable(publishing))
        receipts = publishing.receipts[0]

        def landed(commit: asyncio.Future[None]) -> None:
            error = Closed("the broker closed") if commit.cancelled() else commit.exception()
            if durable.done():
                return
            if error is None:
                durable.set_result(receipts)
            else:
                durable.set_exception(error)

        publishing.commit.add_done_callback(landed)
        return durable

    def _publish_in_line(self, name: str, batch: Batch) -> asyncio.Future[Receipts]:
        before = self._in_line.get(name)

        async def publish() -> Receipts:
            if before is not None:
                await asyncio.wait([before])
            return await self._node.publish(name, batch)

        task = self._in_line[name] = _spawn(publish())

        def left(task: asyncio.Task[Receipts]) -> None:
            if self._in_line.get(name) is task:
                del self._in_line[name]

        task.add_done_callback(left)
        return task

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> dict[str, Receipts]:
        """Publish to every topic that the routing key leads to, in one commit."""
        name = self._allow("publish", exchange)
        for topic in self._node.exchanges.route(name, routing_key):
            self._allow("publish", topic)
        return await self._node.publish_to_exchange(name, routing_key, batch)

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Attachment, int, int, BitMap64]],
    ) -> bool:
        """Publish and acknowledge together, once under this id: false if that had been done before."""
        named = [(self._allow("publish", topic), batch) for topic, batch in publishes]
        return await self._node.transact(transaction, named, acks)

    async def is_transaction_done(self, transaction: str) -> bool:
        return await self._node.is_transaction_done(transaction)

    # --- consuming ----------------------------------------------------------------------------------------------------

    async def attach(
        self,
        topic: str,
        subscription: str,
        config: SubscriptionConfig,
        start: Start,
        consumer: Consumer,
        *,
        keep_retry: bool = False,
    ) -> Attachment:
        name = self._allow("consume", topic)
        return await self._node.attach(name, subscription, config, start, consumer, keep_retry=keep_retry)

    async def browse(self, topic: str, partition: int, offset: int, *, bytes_max: int = 1 << 20) -> list[Stored]:
        """Stored batches as they are, without leasing anything."""
        return await self._node.browse(self._allow("consume", topic), partition, offset, bytes_max=bytes_max)

    # --- topics, subscriptions, exchanges -----------------------------------------------------------------------------

    async def create_topic(self, name: str, config: Mapping[str, Any]) -> None:
        unknown = set(config) - set(TopicConfig.__struct_fields__)
        if unknown:
            known = ", ".join(TopicConfig.__struct_fields__)
            raise InvalidArgument(min(unknown), f"is not a setting of a topic; there are {known}")
        try:
            wanted = msgspec.convert(dict(config), TopicConfig)
        except msgspec.ValidationError as error:
            raise InvalidArgument("topic configuration", str(error)) from None
        await self._node.create_topic(self._allow("manage", name), wanted)

    async def configure_topic(self, name: str, changes: Mapping[str, Any]) -> None:
        await self._node.configure_topic(self._allow("manage", name), changes)

    async def delete_topic(self, name: str) -> None:
        await self._node.delete_topic(self._allow("manage", name))

    async def topics(self) -> list[str]:
        """The full names of all topics but the system's, in order."""
        return sorted(name for name, topic in self._node.topics.items() if not topic.name.startswith("_"))

    async def describe_topic(self, name: str) -> TopicDescription:
        return describe_topic(self._node.topic(self._allow("consume", name)))

    async def unsubscribe(self, topic: str, subscription: str) -> None:
        await self._node.unsubscribe(self._allow("manage", topic), subscription)

    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]:
        return await self._node.seek(self._allow("manage", topic), subscription, start)

    async def redrive(
        self,
        topic: str,
        subscription: str,
        *,
        matching: str | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        messages_max: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        return await self._node.redrive(
            self._allow("manage", topic),
            subscription,
            matching=matching,
            dry_run=dry_run,
            rate=rate,
            messages_max=messages_max,
            progress=progress,
        )

    async def declare_exchange(self, name: str, kind: ExchangeKind) -> None:
        await self._node.exchanges.declare(self._allow("manage", name), kind)

    async def bind(self, exchange: str, topic: str, routing_key: str) -> None:
        target = self._allow("manage", topic)
        await self._node.exchanges.bind(self._allow("manage", exchange), target, routing_key)

    async def unbind(self, exchange: str, topic: str, routing_key: str) -> None:
        target = self._allow("manage", topic)
        await self._node.exchanges.unbind(self._allow("manage", exchange), target, routing_key)

    async def exchanges(self) -> dict[str, Exchange]:
        """By full name."""
        return self._node.exchanges.list()

    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
        authorise(self.principal, "admin", "the node")
        return node_status(self._node, topics_max=min(topics_max, STATUS_TOPICS_MAX))


async def _durable(publishing: Publishing) -> Receipts:
    await publishing.durable()
    return publishing.receipts[0]


def _spawn(work: Coroutine[Any, Any, Receipts]) -> asyncio.Task[Receipts]:
    return asyncio.get_running_loop().create_task(work)
