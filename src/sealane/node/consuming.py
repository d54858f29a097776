"""The commands of those who consume: by a connection, by pulling, or by reading a log as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.filters import compile_filter
from sealane.engine import Packed, Stored
from sealane.errors import Forbidden
from sealane.message import split_topic
from sealane.node.attachment import Attachment
from sealane.node.charging import Charging, counted
from sealane.node.consumers import Consumer
from sealane.node.following.follower import Follower
from sealane.node.following.position import Position
from sealane.node.history import HISTORY_BYTES_MAX, History, read_history
from sealane.node.logs import TopicLog, describe_logs, partition_to_read
from sealane.node.pulling.held import Held
from sealane.node.pulling.pull import Pull, Pulled, config_of
from sealane.node.pulling.ticket import Ticket
from sealane.node.starts import Start
from sealane.security.grants.patterns import check_pattern, takes_in


class Consuming(Charging):
    """What a session can do with what others have published."""

    @counted
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
        """Take part in a subscription, for as long as the principal may: see `sealane.node.grant_changes`."""
        name = self.allow("consume", topic)
        with self.noting_new(name):
            attachment = await self._node.attach(name, subscription, config, start, consumer, keep_retry=keep_retry)
        attachment.principal = self.principal
        self._note_reading(attachment.topic.is_system, name)
        try:
            self.authorise("consume", name)  # It may have been taken away while this waited.
        except Forbidden:
            await attachment.end()
            raise
        return attachment

    @counted
    async def subscribe(self, topic: str, subscription: str, config: SubscriptionConfig, start: Start) -> None:
        """Make sure that the subscription exists as configured, durably, without taking part in it.

        One that exists takes a new lease and new retries; raises `ModeConflict` if its mode or filter differs.
        """
        name = self.allow("consume", topic)
        with self.noting_new(name):
            await self._node.declare_subscription(name, subscription, config, start)
        self._note_reading(self._node.topic(name).is_system, name)

    async def pull(self, topic: str, subscription: str, *, messages_max: int, wait_seconds: float) -> Pulled:
        """Messages for whoever has no connection to wait on, leased until a deadline; see `sealane.node.pulling`.

        A subscription that is new is made, with the defaults, and begins at the earliest message.
        """
        pull = Pull(self._node, messages_max, wait_seconds)
        name = self.allow("consume", topic)
        config = config_of(self._node.topics.get(name), subscription)
        return await pull.take(await self.attach(name, subscription, config, "earliest", pull.consumer))

    @counted
    async def held(self, topic: str, subscription: str, lease: str) -> Held:
        """What was pulled under this lease, to be acknowledged, given back or kept for longer."""
        found = self._node.topic(self.allow("consume", topic))
        return Held(found, subscription, Ticket.read(lease))

    @counted
    async def follow(self, topic: str, start: Start | Position, filter: str | None = None) -> Follower:
        """Read all of a topic, and what comes, without a subscription; see `sealane.node.following`."""
        name = self.allow("consume", topic)
        matching = None if filter is None else compile_filter(filter)
        with self.noting_new(name):
            found = await self._node.ensure_topic(name)
        follower = Follower(found, matching, lambda: self.allow("consume", name))
        await follower.begin(start)
        self._note_reading(found.is_system, name)
        return follower

    @counted
    async def browse(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> list[Stored]:
        """Stored batches as they are, without leasing anything."""
        name = self.allow("consume", topic)
        stored = await self._node.browse(
            name, partition, offset, bytes_max=bytes_max, incarnation=incarnation, stop=stop
        )
        self._note_reading(self._node.topic(name).is_system, name)
        return stored

    @counted
    async def browse_packed(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> Sequence[Stored | Packed]:
        """The same for who unpacks what is stored compressed."""
        name = self.allow("consume", topic)
        stored = await self._node.browse_packed(
            name, partition, offset, bytes_max=bytes_max, incarnation=incarnation, stop=stop
        )
        self._note_reading(self._node.topic(name).is_system, name)
        return stored

    @counted
    async def history(
        self,
        topic: str,
        partition: int,
        entry: int,
        *,
        bytes_max: int = HISTORY_BYTES_MAX,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> History:
        """What has happened to a partition's messages, from a journal entry on; see `sealane.node.history`."""
        found = self._node.topic(self.allow("consume", topic))
        owner = partition_to_read(found, partition, incarnation)
        read = await read_history(owner, entry, bytes_max=bytes_max, stop=stop)
        self._note_reading(found.is_system, found.full_name)
        return read

    @counted
    async def logs(self, topics: Sequence[str], at: datetime | None = None) -> list[TopicLog]:
        """What there is to read. A name raises `Forbidden` or `TopicNotFound`; a pattern takes in what one may read."""
        found = {}
        for name in topics:
            if "*" not in name:
                topic = self._node.topic(self.allow("consume", name))
                found[topic.full_name] = topic
                continue
            pattern = "/".join(split_topic(name, self.principal.domain))
            check_pattern(pattern)
            for full_name, topic in self._node.topics.items():
                if takes_in(pattern, full_name, self.principal.domain) and self.may("consume", full_name):
                    found[full_name] = topic
        for full_name, topic in found.items():
            self._note_reading(topic.is_system, full_name)
        return await describe_logs([found[full_name] for full_name in sorted(found)], at)

    @counted
    async def advance(self, topic: str, subscription: str, positions: Mapping[int, int]) -> None:
        """Settle everything below these offsets for a reader that keeps its own position."""
        await self._node.advance(self.allow("consume", topic), subscription, positions)

    def _note_reading(self, is_system: bool, name: str) -> None:
        if is_system:
            self.looked("system.read", name)
