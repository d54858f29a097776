"""What the producers of a simulated broker do."""

from __future__ import annotations

import asyncio
import hashlib
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import (
    DeadlineExceeded,
    QueueFull,
    StaleSequence,
    StorageFull,
    TransactionAborted,
)
from sealane.node.receipts import Receipt
from tests.simulation import history
from tests.simulation.history import (
    Flushed,
    Message,
    Place,
    PublishAcked,
    PublishCalled,
    PublishRefused,
    TransactionCalled,
    TransactionCommitted,
)
from tests.simulation.labels import payload_of
from tests.simulation.scenario import Step

if TYPE_CHECKING:
    from tests.simulation.broker_subject import Broker

REFUSALS = (StorageFull, QueueFull, StaleSequence)
"""Errors that promise that nothing was published."""

Given = Mapping[str, Any]
"""A message as a step has it."""


def options(message: Given) -> dict[str, Any]:
    """The keyword arguments of a publish."""
    found = {name: message[name] for name in ("priority", "delay", "ttl") if name in message}
    if "key" in message:
        found["key"] = message["key"].encode()
    return found


def meant(message: Given, *, once: bool = False) -> Message:
    plain = "priority" not in message and "delay" not in message
    return Message(
        message["label"],
        message.get("key"),
        plain=plain,
        may_expire="ttl" in message,
        delay=message.get("delay", 0.0),
        ttl=message.get("ttl", math.inf),
        once=once,
    )


def payload(message: Given) -> bytes:
    return payload_of(message["label"], message["bytes"])


def id_of(label: str) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.blake2b(label.encode(), digest_size=16).digest())


class Publishing:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._record = broker.record

    async def publish(self, step: Step) -> None:
        topic, how, messages = step.args["topic"], step.args["how"], step.args["messages"]
        if (
            topic not in self._broker.life.scenario.settings["topics"]
            and f"default/{topic}" not in self._broker.node.topics
        ):
            return
        name = self._broker.topic_name(self._broker.node.topic(topic))
        match how:
            case "one" | "together":
                await asyncio.gather(*(self._one(step.actor, topic, name, message) for message in messages))
            case "once":
                for message in messages:
                    await self._one(step.actor, topic, name, message, once=True)
            case "many":
                await self._many(step.actor, topic, name, messages)
            case "producer":
                await self._producer(step.actor, topic, name, messages)
            case "idempotent":
                await self._idempotent(step.actor, topic, name, messages, step.args["sequence"])
            case "exchange":
                await self._exchange(step.actor, messages[0])

    async def _one(self, actor: str, topic: str, name: str, message: Given, *, once: bool = False) -> None:
        identity = id_of(message["label"]) if once else None
        self._record(PublishCalled(actor, name, (meant(message, once=once),)))
        try:
            receipt = await self._broker.lane.publish(topic, payload(message), id=identity, **options(message))
        except REFUSALS as error:
            self._record(PublishRefused((message["label"],), str(error)))
        except DeadlineExceeded:
            return
        else:
            self._acked(actor, name, [message], [receipt])

    async def _many(self, actor: str, topic: str, name: str, messages: Sequence[Given]) -> None:
        plain = [{"label": message["label"], "bytes": message["bytes"]} for message in messages]
        self._record(PublishCalled(actor, name, tuple(map(meant, plain))))
        try:
            receipts = await self._broker.lane.publish_many(topic, list(map(payload, plain)))
        except REFUSALS as error:
            self._record(PublishRefused(_labels(plain), str(error)))
        except DeadlineExceeded:
            return
        else:
            self._acked(actor, name, plain, receipts)

    async def _producer(self, actor: str, topic: str, name: str, messages: Sequence[Given]) -> None:
        self._record(PublishCalled(actor, name, tuple(map(meant, messages))))
        try:
            async with self._broker.lane.producer(topic) as producer:
                for message in messages:
                    await producer.send(payload(message), **options(message))
        except (*REFUSALS, DeadlineExceeded):
            return  # Some of it may be stored: a producer sends batches as they come.
        self._record(Flushed(actor, name, _labels(messages)))

    async def _idempotent(self, actor: str, topic: str, name: str, messages: Sequence[Given], sequence: int) -> None:
        """What a client does that numbers its batches, and sends one again when it did not hear of it."""
        lane = self._broker.lane
        batch = lane.outgoing.build([lane.outgoing.row(payload(message), **options(message)) for message in messages])
        meta = msgspec.structs.replace(batch.meta, producer=id_of(actor).bytes, sequence=sequence)
        self._record(PublishCalled(actor, name, tuple(meant(message, once=True) for message in messages)))
        try:
            receipts = await self._broker.node.publish(topic, batch.with_meta(meta))
        except REFUSALS as error:
            self._record(PublishRefused(_labels(messages), str(error)))
        else:
            self._acked(actor, name, messages, receipts)

    async def _exchange(self, actor: str, message: Given) -> None:
        from tests.simulation.broker_subject import EXCHANGE

        topics = self._broker.life.scenario.settings["exchange"]
        for topic in topics:
            self._record(PublishCalled(actor, topic, (meant(message),)))
        try:
            receipts = await self._broker.lane.publish_to(EXCHANGE, "any", payload(message), **options(message))
        except REFUSALS as error:
            for _ in topics:
                self._record(PublishRefused((message["label"],), str(error)))
        except DeadlineExceeded:
            return
        else:
            for full_name, receipt in receipts.items():
                self._acked(actor, full_name.partition("/")[2], [message], [receipt])

    def _acked(self, actor: str, name: str, messages: Sequence[Given], receipts: Iterable[Receipt]) -> None:
        places = tuple(Place(name, receipt.partition, receipt.offset) for receipt in receipts)
        self._record(PublishAcked(actor, _labels(messages), places))

    # --- transactions -------------------------------------------------------------------------------------------------

    async def transact(self, step: Step) -> None:
        await transact(self._broker, step.actor, step.args["transaction"])


async def transact(broker: Broker, caller: str, given: Mapping[str, Any], *acks: tuple[str, Place, Any]) -> None:
    """Publish and acknowledge together: acks are (subscription, place, message)."""
    messages = given["messages"]
    settling = tuple((name, place) for name, place, _ in acks)
    broker.record(TransactionCalled(given["id"], tuple(map(meant, messages)), settling, caller))
    transaction = broker.lane.transaction(given["id"])
    try:
        async with transaction:
            for _, _, message in acks:
                await transaction.ack(message)
            for message in messages:
                await transaction.publish(message["topic"], payload(message), **options(message))
    except (TransactionAborted, StorageFull, QueueFull):
        broker.record(history.TransactionAborted(given["id"], caller))
    except DeadlineExceeded:
        return
    else:
        broker.record(TransactionCommitted(given["id"], caller, transaction.replayed))


def _labels(messages: Iterable[Given]) -> tuple[str, ...]:
    return tuple(message["label"] for message in messages)
