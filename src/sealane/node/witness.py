"""The witness of a partition: sees what happens to its messages, counts it, and tells the log of each batch's life.

It works a batch or a range at a time, never a message at a time, and while debug logging is off it only counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sealane.delivery.events import Acked, DeadLettered, Dropped, Event, Expired, Failed, Granted, Released
from sealane.delivery.offsets import packed_count, unpack
from sealane.delivery.subscription import Subscription
from sealane.log import get_log
from sealane.message import Batch
from sealane.node.deliveries import Delivery
from sealane.node.measures import Measures, TopicMeasures

log = get_log("sealane.messages")
_DEBUG = logging.getLogger("sealane.messages").isEnabledFor

LEASES_SPARE = 1_024
"""Times of leases that ended unnoticed are cleared away when there are this many more of them than twice the leases."""


class Witness:
    """Of one partition. `measures` are its topic's."""

    __slots__ = ("_created_us", "_measures", "_partition", "_topic", "measures")

    def __init__(self, measures: Measures, topic: str, partition: int) -> None:
        self.measures: TopicMeasures = measures.topic(topic)
        self._measures = measures
        self._topic = topic
        self._partition = partition
        self._created_us: dict[int, int] = {}
        """By lease: when the first of its messages was made."""

    def committed(self, batch: Batch, base: int, started: float) -> None:
        """The batch is durable; it was handed to the engine at `started`, on the loop's clock."""
        now = self._measures.now()
        count = len(batch)
        topic = self.measures
        topic.published += count
        topic.published_bytes += batch.nbytes
        topic.published_rate.add(count, now)
        self._measures.publish_to_durable_seconds.observe(now - started, count)
        if _DEBUG(logging.DEBUG):
            first_id = batch.records.column("id")[0].as_py().hex() if count else ""
            self._tell("published", base, base + count - 1, count, bytes=batch.nbytes, first_id=first_id)

    def repeated(self, count: int) -> None:
        """Messages were published that are here already."""
        self.measures.duplicates += count
        if _DEBUG(logging.DEBUG):
            log.debug("published before", topic=self._topic, partition=self._partition, count=count)

    def delivered(self, delivery: Delivery, nbytes: int, subscription: Subscription) -> None:
        """A consumer was handed a lease's messages, about this many bytes."""
        measures = self.measures.subscription(delivery.subscription)
        measures.delivered += len(delivery)
        measures.delivered_bytes += nbytes
        if delivery.attempts:
            measures.redelivered += sum(len(offsets) for offsets, _ in delivery.attempts)
        self._created_us[delivery.lease] = delivery.parts[0].batch.first_created_us
        if len(self._created_us) > 2 * len(subscription.leases.by_id) + LEASES_SPARE:
            # Expiry and loss end leases without naming them; the youngest are those that are likely to live.
            self._created_us = dict(list(self._created_us.items())[-LEASES_SPARE:])

    def happened(self, events: Iterable[Event], subscription: Subscription | None) -> None:
        """Events that have taken effect, of the subscription, or (None) of any."""
        debug = _DEBUG(logging.DEBUG)
        for event in events:
            if not isinstance(event, _OF_MESSAGES):
                continue
            if isinstance(event, Acked):
                self._acked(event, subscription)
            elif not isinstance(event, Granted):
                self._count(event, subscription)
            if debug:
                self._tell_event(event)

    def _count(
        self, event: Failed | Released | Expired | Dropped | DeadLettered, subscription: Subscription | None
    ) -> None:
        count = packed_count(event.offsets)
        measures = self.measures.subscription(event.subscription)
        if isinstance(event, Failed):
            if event.cause == "nack":
                measures.nacked += count
            elif event.cause == "lease expired":
                measures.lease_expired += count
            else:
                measures.connection_ended += count
            self._ended(event.lease, subscription)
        elif isinstance(event, Released):
            measures.released += count
            self._ended(event.lease, subscription)
        elif isinstance(event, Expired):
            measures.expired += count
        elif isinstance(event, Dropped):
            measures.dropped += count
        else:
            measures.dead_lettered += count

    def _acked(self, event: Acked, subscription: Subscription | None) -> None:
        count = packed_count(event.offsets)
        measures = self.measures.subscription(event.subscription)
        measures.acked += count
        measures.acked_rate.add(count, self._measures.now())
        created_us = self._created_us.get(event.lease)
        if created_us is not None:
            self._measures.publish_to_ack_seconds.observe(max(0, event.time_us - created_us) / 1e6, count)
            self._ended(event.lease, subscription)

    def _ended(self, lease: int, subscription: Subscription | None) -> None:
        if subscription is None or lease not in subscription.leases.by_id:
            self._created_us.pop(lease, None)

    def _tell_event(self, event: _OfMessages) -> None:
        fields: dict[str, object] = {"subscription": event.subscription}
        if isinstance(event, Granted | Acked | Failed | Released):
            fields["lease"] = event.lease
        if isinstance(event, Granted):
            fields["consumer"] = event.consumer
        elif isinstance(event, Failed):
            fields["cause"] = event.cause
        offsets = unpack(event.offsets)
        if offsets:
            self._tell(_SENTENCES[type(event)], offsets.min(), offsets.max(), len(offsets), **fields)

    def _tell(self, sentence: str, first: int, last: int, count: int, **fields: object) -> None:
        log.debug(
            sentence,
            topic=self._topic,
            partition=self._partition,
            first_offset=first,
            last_offset=last,
            count=count,
            **fields,
        )


_OfMessages = Granted | Acked | Failed | Released | Expired | Dropped | DeadLettered
_OF_MESSAGES = (Granted, Acked, Failed, Released, Expired, Dropped, DeadLettered)
_SENTENCES = {
    Granted: "granted",
    Acked: "acked",
    Failed: "failed",
    Released: "released",
    Expired: "expired",
    Dropped: "dropped",
    DeadLettered: "dead-lettered",
}
