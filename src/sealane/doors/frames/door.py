"""The frames door: length-prefixed frames over TCP, of producers and consumers that say no more than that."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from sealane.delivery.config import LEASE_SECONDS_MAX, SubscriptionConfig
from sealane.doors.frames.connection import FramesConnection, refusal_frame
from sealane.doors.frames.consumer import FramesConsumer
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.doors.nameless.door import NamelessDoor
from sealane.doors.tls import NodeTls
from sealane.errors import TooManyConnections, TopicNotFound
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer
from sealane.node.gate import Gate
from sealane.node.session import Session


class FramesDoor(NamelessDoor[FramesDoorSettings]):
    """Implements `Door`."""

    name = "frames"
    word_to_plain_text = refusal_frame("this door speaks TLS; connect by it, or have doors.frames.tls turned off")

    def __init__(self, gate: Gate, settings: FramesDoorSettings, *, tls: NodeTls | None = None) -> None:
        super().__init__(gate, settings, tls=tls)
        # A lease that ended while its consumer is there would bring its messages twice: it ends with the connection.
        self._subscribed = SubscriptionConfig(settings.mode, LEASE_SECONDS_MAX)
        self._consumers: set[FramesConsumer] = set()
        self._joining: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)

    def new_connection(self) -> FramesConnection:
        return FramesConnection(self)

    # --- consumers ----------------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Whether what one consumer is handed could be for another one."""
        return self.settings.mode == "queue" and len(self._consumers) > 1

    def new_consumer(self, connection: FramesConnection, session: Session) -> FramesConsumer:
        """Raises `TooManyConnections`."""
        limit = self.settings.consumers_max
        if len(self._consumers) >= limit:
            raise TooManyConnections("of consumers", limit, "doors.frames.consumers_max, or MAX_CONSUMERS")
        consumer = FramesConsumer(connection, session, f"frames:{next(self._numbers)}")
        self._consumers.add(consumer)
        self._share_out_anew()
        consumer.join()
        return consumer

    def consumer_went(self, consumer: FramesConsumer) -> None:
        self._consumers.discard(consumer)
        self._share_out_anew()

    def joins(self, work: Coroutine[Any, Any, None]) -> None:
        """A consumer is on its way in."""
        task = self.spawn("frames consumer", work)
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def everyone_joined(self) -> None:
        """Return when those are in who were on their way: what is published from here on is for them too."""
        if self._joining:
            await asyncio.wait(self._joining)

    def _share_out_anew(self) -> None:
        for consumer in self._consumers:
            consumer.allow_more()

    # --- the subscription ---------------------------------------------------------------------------------------------

    async def attach(self, session: Session, connection: FramesConnection, consumer: Consumer) -> Attachment:
        """Let it take part, on a queue from the first message that is there, otherwise from now on."""
        topic, name = connection.full_name(self.settings.topic), self.settings.subscription
        start = "earliest" if self.settings.mode == "queue" else "latest"
        return await session.attach(topic, name, self._subscribed, start, consumer, keep_retry=True)

    async def declare_queue(self, session: Session, topic: str) -> None:
        """Let messages be kept for consumers that have not come yet. A subscription that exists stays as it is."""
        name = self.settings.subscription
        with suppress(TopicNotFound):
            described = await session.describe_topic(topic)
            if any((each.name, each.config.mode) == (name, "queue") for each in described.subscriptions):
                return
        await session.subscribe(topic, name, self._subscribed, "earliest")
