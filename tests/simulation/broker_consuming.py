"""What the consumers of a simulated broker do: take messages, answer them in all the ways there are, and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from pyroaring import BitMap64

from sealane.client import Lane, Message, MessageBatch
from sealane.client.answers import Answers
from sealane.client.embedded import in_process
from sealane.errors import Closed, LeaseLost, StorageFull, SubscriptionNotFound, TopicNotFound
from sealane.node import Consumer, Delivery
from sealane.node.attachment import Attachment
from tests.simulation.broker_publishing import transact
from tests.simulation.history import (
    AckCalled,
    AckConfirmed,
    AckRefused,
    Extended,
    Fetched,
    Granted,
    Nacked,
    Place,
    SessionEnded,
)
from tests.simulation.labels import read_payload
from tests.simulation.scenario import Step

if TYPE_CHECKING:
    from tests.simulation.broker_subject import Broker


class Session:
    """One consumer, from when it comes to when it goes; what it sees and says is recorded under its name."""

    def __init__(self, broker: Broker, actor: str, topic: str, subscription: str) -> None:
        self.broker = broker
        self.name = broker.session(actor)
        self.topic = topic
        self.subscription = subscription
        self.spec = broker.spec(topic, subscription)
        self.topic_name = ""
        self.known_as = subscription
        """A broadcast consumer is a subscription of its own to the record."""

    def consume(self, lane: Lane, *, prefetch: int, batches: bool = False) -> Any:
        from tests.simulation.broker_subject import subscription_config

        config = subscription_config(self.spec)
        arguments = {
            "mode": config.mode,
            "filter": config.filter,
            "lease_seconds": config.lease_seconds,
            "retry": config.retry,
            "prefetch": prefetch,
            "auto_ack": self.spec["auto_ack"],
        }
        if batches:
            return lane.consume_batches(self.topic, self.subscription, messages_max=5, **arguments)
        return lane.consume(self.topic, self.subscription, **arguments)

    def came(self, answers: Answers, *, settles: bool) -> None:
        attachment = cast(Attachment, answers.hold)
        topic = attachment.topic
        self._watch_fetching(attachment.consumer)
        self._watch_leaving(attachment)
        self.topic_name = self.broker.topic_name(topic)
        if self.spec["mode"] == "broadcast":
            self.known_as = f"{self.subscription}@{self.name}"
            self.broker.note_subscription(topic, self.known_as, self.spec, settles=settles)
        else:
            self.broker.note_subscription(topic, self.subscription, self.spec, settles=not self.spec["auto_ack"])

    def _watch_fetching(self, consumer: Consumer) -> None:
        deliver = consumer.deliver

        def watched(delivery: Delivery) -> None:
            places = [
                Place(self.topic_name, delivery.partition, int(offset))
                for part in delivery.parts
                for offset in part.offsets
            ]
            self.broker.record(Fetched(self.known_as, self.name, tuple(places)))
            deliver(delivery)

        consumer.deliver = watched

    def _watch_leaving(self, attachment: Attachment) -> None:
        """A consumer that is cancelled leaves before whoever cancelled it can tell."""
        leave = attachment.leave

        def watched(unhandled: Sequence[tuple[int, int, BitMap64]] = ()) -> None:
            self.ended()
            leave(unhandled)

        attachment.leave = watched  # type: ignore[method-assign]

    def place(self, message: Message) -> Place:
        return Place(self.topic_name, message.partition, message.offset)

    def granted(self, message: Message) -> None:
        life = self.broker.life
        label, intact = read_payload(message.payload)
        held_until = life.loop.time() + (message._delivery.deadline_us - life.clock_us()) / 1e6
        jumps = any(fault.kind == "clock_jump" for fault in life.scenario.faults)
        self.broker.record(
            Granted(
                self.known_as,
                self.name,
                self.place(message),
                label,
                message.attempt,
                intact,
                held_until=None if self.spec["auto_ack"] else held_until,
                granted_at=None if jumps else held_until - self.spec["lease_seconds"],
            )
        )

    def ended(self, *, leases_end: bool = False) -> None:
        self.broker.record(SessionEnded(self.topic_name, self.known_as, self.name, leases_end))


class Consuming:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._record = broker.record

    async def consume(self, step: Step) -> None:
        args, broker = step.args, self._broker
        session = Session(broker, step.actor, args["topic"], args["subscription"])
        lane = in_process(broker.node) if args["leave"] == "lane" else broker.lane
        consumption = session.consume(lane, prefetch=args["prefetch"], batches=args["batches"])
        try:
            async with asyncio.timeout(args["seconds"]):
                session.came(await consumption.open(), settles=False)
                async with aclosing(aiter(consumption)) as items:
                    try:
                        await self._handle(session, items, args)
                    finally:
                        # Noted before and after: what it had fetched goes back somewhere in between.
                        session.ended(leases_end=args["leave"] == "lane")
        except (TimeoutError, TopicNotFound, SubscriptionNotFound, Closed, StorageFull):
            # Nothing more came, or the topic was deleted, or there was no room for a new subscription.
            pass
        finally:
            if args["leave"] == "lane":
                await lane.close()
            else:
                await consumption.close()
            if session.topic_name:
                session.ended(leases_end=args["leave"] == "lane")

    async def _handle(self, session: Session, items: Any, args: Mapping[str, Any]) -> None:
        transaction = args.get("transaction")
        for action in args["actions"]:
            item = await anext(items)
            messages = list(item) if isinstance(item, MessageBatch) else [item]
            for message in messages:
                session.granted(message)
            if session.spec["auto_ack"]:
                continue
            if transaction is not None:
                acks = [(session.known_as, session.place(message), message) for message in messages]
                await transact(self._broker, session.name, transaction, *acks)
                transaction = None
            else:
                await self._answer(session, item, messages, action)

    async def _answer(self, session: Session, item: Any, messages: Sequence[Message], action: str) -> None:
        who = (session.known_as, session.name, tuple(map(session.place, messages)))
        lease_seconds = session.spec["lease_seconds"]
        try:
            match action:
                case "ack":
                    self._record(AckCalled(*who))
                    await item.ack()
                case "confirm":
                    await self._confirm(item, who)
                case "nack":
                    self._record(Nacked(*who))
                    await item.nack(delay=0.01 if lease_seconds > 1 else None, reason="no")
                case "extend":
                    await item.extend(2 * lease_seconds)
                    self._record(Extended(*who, self._broker.life.loop.time() + 2 * lease_seconds))
                    await asyncio.sleep(1.5 * lease_seconds)
                    await self._confirm(item, who)
                case "stall":
                    await asyncio.sleep(1.5 * lease_seconds)
                    await self._confirm(item, who)
        except LeaseLost:
            return

    async def _confirm(self, item: Any, who: tuple[str, str, tuple[Place, ...]]) -> None:
        self._record(AckCalled(*who))
        try:
            await item.ack(confirm=True)
        except LeaseLost:
            # Of several messages some may have been acknowledged.
            if len(who[2]) == 1:
                self._record(AckRefused(*who))
        else:
            self._record(AckConfirmed(*who))
