"""A connection's part in a queue: what it was handed, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyroaring import BitMap64

from sealane.doors.cipher.holdings import Holdings, Place
from sealane.doors.cipher.lives import Lives
from sealane.doors.cipher.outgoing import Outgoing, outgoing
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.errors import Closed, SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery
from sealane.node.session import Session


class QueueConsumer(ABC):
    """Made when a client asks for a queue; `attachment` is there a little later, and before the first message."""

    def __init__(self, name: str, lives: Lives) -> None:
        """`name` is unlike that of any other consumer of the node."""
        self.consumer = Consumer(name, self._deliver, self._revoke, self._closed)
        self.held = Holdings()
        self.left = False
        """Whether nothing more will come to it."""
        self._attachment: Attachment | None = None
        self._settling: set[Place] = set()
        """What is acknowledged, and not durably yet."""
        self._lives = lives

    @property
    def attachment(self) -> Attachment:
        assert self._attachment is not None, "it takes part"
        return self._attachment

    async def attach(self, session: Session, topic: str, settings: CipherDoorSettings) -> None:
        """Take part in the queue, which is made if it is new. Raises `Closed` if its connection is gone by then."""
        config = settings.subscription_config
        attachment = await session.attach(topic, settings.subscription, config, "earliest", self.consumer)
        self._attachment = attachment
        if self.left:
            await attachment.end()
            raise Closed("the connection had ended before it took part in the queue")

    # --- from the node ------------------------------------------------------------------------------------------------

    def _deliver(self, delivery: Delivery) -> None:
        messages = list(outgoing(delivery))
        if not self.wants():
            # It was granted while the client stopped waiting for it.
            self.attachment.release(delivery.partition, delivery.lease)
            return
        for message in messages:
            self.held.add(message.message_id, Place(delivery.partition, delivery.lease, message.offset))
        told = [message.message_id for message in messages]
        self._lives.delivered(told, queue=delivery.topic, consumer=self.consumer.id)
        self.hand_over(messages)

    def _revoke(self, revocation: Revocation) -> None:
        revoked = self.held.revoke(revocation.partition, revocation.lease, revocation.offsets)
        if revoked:
            self._tell_come_back(revoked, "its lease ended")
            self.freed(len(revoked))

    def _tell_come_back(self, message_ids: Sequence[str], why: str) -> None:
        topic = self.attachment.topic.full_name
        self._lives.came_back(message_ids, queue=topic, consumer=self.consumer.id, why=why)

    def _closed(self, error: SealaneError) -> None:
        self.left = True
        self.gone(error)

    # --- what its kind says -------------------------------------------------------------------------------------------

    @abstractmethod
    def wants(self) -> bool:
        """Whether messages that come now are wanted."""

    @abstractmethod
    def hand_over(self, messages: Sequence[Outgoing]) -> None:
        """These are the client's now."""

    @abstractmethod
    def freed(self, messages: int) -> None:
        """So many are held no more."""

    @abstractmethod
    def gone(self, error: SealaneError) -> None:
        """The queue is gone, or not for this client any more."""

    # --- answering ----------------------------------------------------------------------------------------------------

    async def settle(self, places: Sequence[Place]) -> None:
        """Return when it is durable that these, all of one lease, are acknowledged. Raises `LeaseLost`. They stay held
        until they are `done`.
        """
        partition, lease, _ = places[0]
        self._settling.update(places)
        try:
            await self.attachment.ack(partition, lease, BitMap64([place.offset for place in places]))
        finally:
            self._settling.difference_update(places)

    def done(self, message_ids: Sequence[str], places: Sequence[Place]) -> None:
        """These are acknowledged, durably."""
        topic = self.attachment.topic.full_name
        self._lives.acknowledged(message_ids, queue=topic, consumer=self.consumer.id)
        self.forget(places)

    def forget(self, places: Sequence[Place]) -> None:
        forgotten = sum(map(self.held.forget, places))
        if forgotten:
            self.freed(forgotten)

    # --- taking and leaving -------------------------------------------------------------------------------------------

    def pause(self) -> None:
        self.consumer.paused = True

    def resume(self) -> None:
        self.consumer.paused = False
        if self._attachment is not None:
            self._attachment.resume()

    def tidy(self) -> None:
        """Forget what it holds no more."""
        if self._attachment is not None and len(self.held):
            forgotten = self.held.tidy(self._attachment.holds)
            if forgotten:
                self.freed(forgotten)

    def leave(self) -> None:
        """Take no more; what it holds may still be acknowledged."""
        self.left = True
        if self._attachment is not None:
            self._attachment.leave()

    def give_back(self) -> None:
        """Its connection is gone: what it holds is ready for others at once, and no attempt is counted.

        A receiver of CipherMQ may take one message, and go while a hundred were on their way to it.
        """
        self.left = True
        if self._attachment is not None:
            self._tell_come_back(self.held.message_ids(besides=self._settling), "the connection ended")
            self._attachment.leave(self.held.take_all())

    async def end(self) -> None:
        """After `give_back`."""
        if self._attachment is not None:
            await self._attachment.end()
