"""A consumer's hold on a subscription: its credit, its answers, and how it leaves."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap64

from sealane.delivery.config import DELAY_SECONDS_MAX, LEASE_SECONDS_MAX, SECOND_US
from sealane.delivery.subscription import Subscription
from sealane.errors import Closed, InvalidArgument, LeaseLost
from sealane.log import get_log
from sealane.node.consumers import Consumer, Group
from sealane.node.dispatch import Dispatcher
from sealane.node.owner import PartitionOwner
from sealane.node.topics import Topic
from sealane.security.principals import Principal

REASON_CHARS_MAX = 1_024
"""Why a message was given back: it is journalled, and goes with the message to the dead letters as a header."""

log = get_log("sealane.node")


class Attachment:
    """Made by `Node.attach`. After `detach` no more messages come, and what was handed out can still be settled."""

    def __init__(self, topic: Topic, group: Group, consumer: Consumer, member: str | None) -> None:
        self.topic = topic
        self.group = group
        self.consumer = consumer
        self.principal: Principal | None = None
        """Whose grants must allow it for as long as it goes on; None: it is the node's own."""
        self._position = member or group.name
        self._member = member
        self._attached = True

    # --- taking -------------------------------------------------------------------------------------------------------

    def add_credit(self, messages: int) -> None:
        """The consumer can take this many more."""
        self.consumer.credit += messages
        self._wake()

    def pause(self) -> None:
        """Give this consumer nothing until `resume`, whatever its credit."""
        self.consumer.paused = True

    def resume(self) -> None:
        self.consumer.paused = False
        self._wake()

    def positions(self) -> dict[int, int]:
        """By partition: everything below is settled for this consumer's position."""
        return {owner.key.partition: reader.settled.floor for owner, reader in self._readers()}

    def holds(self, partition: int, lease: int) -> bool:
        """Whether this lease is alive, and this consumer's."""
        readers = self._reader(partition)
        found = readers[0][1].leases.by_id.get(lease) if readers else None
        return found is not None and found.consumer == self.consumer.id

    def holds_any(self) -> bool:
        """Whether something that this consumer was handed is still to be answered."""
        return any(reader.leases.of_consumer(self.consumer.id) for _, reader in self._readers())

    def may_be_served(self) -> bool:
        """Whether there is, or may be, something ready for this consumer."""
        return any(
            reader.scanned < owner.core.visible or reader.backlog.has_ready(self.consumer.id)
            for owner, reader in self._readers()
        )

    async def has_settled(self, identity: bytes) -> bool:
        """Whether a message whose publisher gave it this id is settled, durably; as far as such ids are remembered."""
        for owner, reader in self._readers():
            offset = owner.core.ids.find(identity)
            if offset is not None and offset in reader.settled:
                await owner.flush()
                return True
        return False

    def start_partition(self, owner: PartitionOwner) -> None:
        """Take messages of this partition too, unless this consumer has left, or its subscription was deleted."""
        if self._attached and self._position not in owner.dispatchers:
            if self._member is not None and self._member not in owner.core.members:
                owner.core.join(self._member, self.group.config, owner.core.start)
            subscription = owner.core.subscription(self._position)
            owner.dispatchers[self._position] = Dispatcher(owner, subscription, self.group)

    # --- answering ----------------------------------------------------------------------------------------------------

    async def ack(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """Settle leased messages, and return when that is durable. Raises `LeaseLost` if one of them was neither
        leased nor settled.
        """
        owner, subscription = self.find(partition)
        held = subscription.leases.held(lease, offsets)
        self.settle(partition, lease, offsets)
        await owner.ready()
        await owner.flush()
        self._check_held(subscription, lease, offsets, held)

    def settle(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """An ack that nobody waits for. Nothing happens if the topic or the subscription was deleted meanwhile."""
        for owner, subscription in self._reader(partition):
            event = subscription.ack(lease, offsets, owner.clock())
            if event is not None:
                # An ack makes nothing ready, but for the next message of its key.
                owner.note(subscription, [event], wake=subscription.config.mode == "key-shared")

    async def nack(
        self,
        partition: int,
        lease: int,
        offsets: BitMap64 | None = None,
        *,
        delay: float | None = None,
        reason: str | None = None,
        confirm: bool = False,
    ) -> None:
        """Give leased messages back as failed: an attempt counts; they come again after `delay` or the back-off."""
        if delay is not None and not 0 <= delay <= DELAY_SECONDS_MAX:
            raise InvalidArgument("delay", f"{delay} is not in 0 to {DELAY_SECONDS_MAX:,} seconds")
        if reason is not None and len(reason) > REASON_CHARS_MAX:
            raise InvalidArgument("reason", f"it has {len(reason):,} characters, the limit is {REASON_CHARS_MAX:,}")
        owner, subscription = self.find(partition)
        delay_us = None if delay is None else round(delay * SECOND_US)
        held = subscription.leases.held(lease, offsets)
        events = subscription.fail(lease, offsets, owner.clock(), cause="nack", delay_us=delay_us, reason=reason)
        owner.revoked(subscription, events)
        owner.note(subscription, events)
        if confirm:
            await owner.ready()
            await owner.flush()
            self._check_held(subscription, lease, offsets, held)

    async def extend(self, partition: int, lease: int, seconds: float) -> int:
        """Move the lease's deadline to `seconds` from now, and return it."""
        if not 0 < seconds <= LEASE_SECONDS_MAX:
            raise InvalidArgument("seconds", f"{seconds} is not in 0 to {LEASE_SECONDS_MAX:g} seconds")
        owner, subscription = self.find(partition)
        deadline_us = owner.clock() + round(seconds * SECOND_US)
        event = subscription.extend(lease, deadline_us)
        if event is None:
            raise LeaseLost(self.group.name, "it has expired or everything in it is settled; nothing to extend")
        owner.note(subscription, [event], soon=False)
        return deadline_us

    def release(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """Give back messages that were not handled: ready at once for others, no attempt counted."""
        for owner, subscription in self._reader(partition):
            released = subscription.release(lease, offsets)
            if released:
                owner.revoked(subscription, released)
                owner.note(subscription, released)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def leave(self, unhandled: Sequence[tuple[int, int, BitMap64]] = ()) -> None:
        """Take no more messages, and give the unhandled ones back: (partition, lease, offsets)."""
        self.consumer.credit = 0
        self.group.consumers.pop(self.consumer.id, None)
        for partition, lease, offsets in unhandled:
            self.release(partition, lease, offsets)
        self._wake()

    async def detach(self) -> None:
        """Leave, and let go of what only this consumer needed."""
        if not self._attached:
            return
        self._attached = False
        tell = log.info if self.consumer.bound else log.debug  # Whoever pulls comes and leaves each time.
        tell("a consumer left", topic=self.topic.full_name, subscription=self.group.name, consumer=self.consumer.id)
        self.leave()
        if not self.group.consumers:
            # All of them leave before the first wait: a consumer that comes meanwhile must find none of them, and if
            # this one is cancelled while it waits, none of them goes on.
            popped = [owner.dispatchers.pop(self._position, None) for owner in self.topic.owners]
            leaving = [dispatcher for dispatcher in popped if dispatcher is not None]
            for dispatcher in leaving:
                dispatcher.stop()
            for dispatcher in leaving:
                await dispatcher.close()
        if not self.holds_any():
            await self.end()

    async def end(self, *, node_stops: bool = False) -> None:
        """The connection is gone: what is still leased goes back, and counts as an attempt.

        Not if it is the node that stops: that is no failure of whoever handles the messages.
        """
        await self.detach()
        for owner, reader in self._readers():
            if node_stops:
                released = [
                    event
                    for lease in reader.leases.of_consumer(self.consumer.id)
                    if lease.bound
                    for event in reader.release(lease.id, None)
                ]
                owner.note(reader, released)
            else:
                owner.note(reader, reader.end_connection(self.consumer.id, owner.clock()))
            if self._member is not None:
                owner.core.members.pop(self._member, None)
        self.topic.attachments.pop(self.consumer.id, None)

    def _reader(self, partition: int) -> list[tuple[PartitionOwner, Subscription]]:
        return self._readers(self.topic.owners[partition : partition + 1])

    def _readers(self, owners: Sequence[PartitionOwner] | None = None) -> list[tuple[PartitionOwner, Subscription]]:
        """This consumer's position on the partitions (None: on all), where it still exists."""
        found = []
        for owner in self.topic.owners if owners is None else owners:
            reader = owner.core.subscriptions.get(self._position) or owner.core.members.get(self._position)
            if reader is not None:
                found.append((owner, reader))
        return found

    def find(self, partition: int) -> tuple[PartitionOwner, Subscription]:
        """The partition, and this consumer's position on it."""
        if not 0 <= partition < len(self.topic.owners):
            raise Closed(f"topic {self.topic.full_name!r} was deleted")
        owner = self.topic.owners[partition]
        return owner, owner.core.subscription(self._position)

    def _check_held(self, subscription: Subscription, lease: int, offsets: BitMap64 | None, held: BitMap64) -> None:
        """Raise if something that was answered for was neither leased nor settled."""
        if offsets is None:
            if not held:
                raise LeaseLost(self.group.name, f"lease {lease} has ended; its messages may come again")
            return
        lost = [offset for offset in offsets - held if offset not in subscription.settled]
        if lost:
            detail = f"{len(lost)} messages, the first at offset {lost[0]}, were no longer leased and may come again"
            raise LeaseLost(self.group.name, detail)

    def _wake(self) -> None:
        for owner in self.topic.owners:
            dispatcher = owner.dispatchers.get(self._position)
            if dispatcher is not None:
                dispatcher.wake()
