"""A partition with everything around it that the core leaves to others: a clock, a log to scan, a journal to fold."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap64

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.delivery.events import (
    Advanced,
    DeadLettered,
    Event,
    Expired,
    Failed,
    Granted,
    Published,
    Sought,
    TransactionDone,
    decode_events,
    encode_events,
)
from sealane.delivery.limits import DeliveryLimits
from sealane.delivery.offsets import Packed, pack, unpack
from sealane.delivery.partition import Partition, Publication
from sealane.delivery.subscription import Subscription
from sealane.message import Batch, BatchMeta, Limits, Row, Stamp, decode, encode, from_payloads, from_rows

MS = 1_000
SECOND = 1_000_000
START_US = 1_700_000_000 * SECOND
TOPIC = "default/orders"


def bitmap(*offsets: int) -> BitMap64:
    return BitMap64(offsets)


def listed(packed: Packed | BitMap64) -> list[int]:
    """A set of offsets, packed or not, as a list to compare with."""
    return list(packed if isinstance(packed, BitMap64) else unpack(packed))


def plain(count: int) -> Batch:
    """So many plain messages, as they come over the wire."""
    limits = Limits(batch_bytes_max=1 << 30, batch_messages_max=10_000_000)
    made = from_payloads([b"m"] * count, Stamp(START_US, bytes(16)), limits=limits)
    return decode(encode(made), limits=limits)


def rows(*rows: Row, **meta: object) -> Batch:
    batch = from_rows(rows, Stamp(START_US, bytes(16)), limits=Limits())
    given = batch.meta.given_ids
    return batch.with_meta(BatchMeta(given_ids=given, **meta))  # type: ignore[arg-type]


def identified(*ids: int, **meta: object) -> Batch:
    """Messages whose ids the caller gave."""
    return rows(*(Row(b"m", id=identity.to_bytes(16, "big")) for identity in ids), **meta)


class SmallQueue:
    """Commands journal what they return; `restart` throws the partition away and folds the journal again."""

    def __init__(self, limits: DeliveryLimits | None = None) -> None:
        self.limits = limits
        self.partition = Partition(TOPIC, limits)
        self.now_us = START_US
        self.log: list[tuple[int, Batch]] = []
        self.journal: list[bytes] = []
        self.events: list[Event] = []
        self._next_lease = 1

    # --- around the core ----------------------------------------------------------------------------------------------

    def record(self, *events: Event) -> None:
        lasting = [event for event in events if not isinstance(event, Published) or event.lasting]
        if lasting:
            self.journal.append(encode_events(lasting))
        self.events.extend(events)

    def happen(self, *events: Event) -> None:
        """These take effect now."""
        for event in events:
            self.partition.apply(event)
        self.record(*events)

    def folded(self) -> Partition:
        """What recovery would make of the journal as it is."""
        partition = Partition(TOPIC, self.limits)
        for entry in self.journal:
            for event in decode_events(entry):
                partition.apply(event)
        partition.recovered(self.partition.start, self.partition.end)
        return partition

    def restart(self) -> None:
        self.partition = self.folded()

    def snapshot(self) -> None:
        """Replace the journal by a snapshot."""
        self.journal = [encode_events([self.partition.snapshot()])]

    def scan(self, subscription: Subscription, partition: Partition | None = None) -> list[Event]:
        """Scan to the end of the log."""
        partition = partition or self.partition
        events: list[Event] = []
        while (needed := partition.advance(subscription, subscription.name)) is not None:
            base, batch = next((base, batch) for base, batch in self.log if base <= needed < base + len(batch))
            events.extend(partition.scan(subscription, base, batch, self.now_us))
        return events

    # --- commands -----------------------------------------------------------------------------------------------------

    def publish(self, batch: Batch | int) -> Publication:
        """Store a batch, or that many plain messages."""
        publication = self.partition.publish(plain(batch) if isinstance(batch, int) else batch, self.now_us)
        if publication.batch is not None:
            self.log.append((publication.base, publication.batch))
            self.happen(*publication.events)
            self.partition.committed(self.partition.end)
        return publication

    def subscribe(
        self,
        name: str = "billing",
        mode: str = "queue",
        *,
        retry: Retry | None = None,
        floor: int = 0,
        filter: str | None = None,
    ) -> Subscription:
        config = SubscriptionConfig(mode=mode, filter=filter, retry=retry or Retry())  # type: ignore[arg-type]
        self.record(self.partition.subscribe(name, config, floor))
        return self[name]

    def __getitem__(self, name: str) -> Subscription:
        return self.partition.subscription(name)

    def grants(
        self, consumer: str = "ann", count: int = 1_000, *, name: str = "billing", bound: bool = True
    ) -> list[Granted]:
        subscription = self[name]
        self.record(*self.scan(subscription))
        granted = subscription.grant(consumer, count, lease_from=self._next_lease, now_us=self.now_us, bound=bound)
        self._next_lease += len(granted)
        self.record(*granted)
        self.check()
        return granted

    def grant(
        self, consumer: str = "ann", count: int = 1_000, *, name: str = "billing", bound: bool = True
    ) -> list[int]:
        """The offsets that the consumer is granted, in the order of the grants."""
        granted = self.grants(consumer, count, name=name, bound=bound)
        return [offset for event in granted for offset in listed(event.offsets)]

    def lease_of(self, offset: int, name: str = "billing") -> int:
        return next(lease.id for lease in self[name].leases.by_id.values() if offset in lease.offsets)

    def ack(self, *offsets: int, name: str = "billing") -> None:
        for offset in offsets:
            event = self[name].ack(self.lease_of(offset, name), bitmap(offset), self.now_us)
            assert event is not None
            self.record(event)
        self.check()

    def nack(
        self, *offsets: int, delay_us: int | None = None, reason: str | None = None, name: str = "billing"
    ) -> list[Event]:
        """Fail these together; they are under one lease."""
        events = self[name].fail(
            self.lease_of(offsets[0], name),
            bitmap(*offsets),
            self.now_us,
            cause="nack",
            delay_us=delay_us,
            reason=reason,
        )
        self.record(*events)
        self.check()
        return [*events]

    def release(self, *offsets: int, name: str = "billing") -> None:
        events = self[name].release(self.lease_of(offsets[0], name), bitmap(*offsets))
        assert events
        self.record(*events)
        self.check()

    def end_connection(self, consumer: str, name: str = "billing") -> list[Event]:
        events = self[name].end_connection(consumer, self.now_us)
        self.record(*events)
        self.check()
        return [*events]

    def bury(self, *offsets: int, name: str = "billing") -> None:
        self.happen(DeadLettered(name, pack(bitmap(*offsets)), self.now_us))
        self.check()

    def seek(self, offset: int, name: str = "billing") -> None:
        self.happen(Sought(name, offset, self.now_us))
        self.check()

    def advance(self, offset: int, name: str = "billing") -> None:
        self.happen(Advanced(name, offset, self.now_us))
        self.check()

    def finish(self, transaction: str) -> None:
        self.happen(TransactionDone(transaction, self.now_us))

    def wait(self, seconds: float = 0.0) -> list[Event]:
        """Let time pass, and everyone see it."""
        self.now_us += round(seconds * SECOND)
        events: list[Event] = []
        for subscription in self.partition.subscriptions.values():
            events.extend(subscription.tick(self.now_us))
        self.record(*events)
        self.check()
        return events

    def check(self) -> None:
        for subscription in self.partition.subscriptions.values():
            subscription.check(self.partition.visible)


def expired(events: Sequence[Event]) -> list[int]:
    return [offset for event in events if isinstance(event, Expired) for offset in listed(event.offsets)]


def failed(events: Sequence[Event]) -> list[int]:
    return [offset for event in events if isinstance(event, Failed) for offset in listed(event.offsets)]
