"""One partition: where its log ends, who reads it, and what has been seen before. The fold of its journal.

Publishing is planned (`publish`), handed to the engine, and then takes effect here (`apply`) in the order of the
commits, before they are durable; consumers see a message only after `committed` says that it is. If a commit fails
later, the whole object is thrown away and folded again from the journal.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence

import msgspec
import numpy as np
from pyroaring import BitMap64

from sealane.delivery.backlog import Priorities
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import (
    BatchStaged,
    Dropped,
    EpochDone,
    Event,
    Expired,
    Lost,
    PartsEnded,
    PublishAdvanced,
    PublishDecided,
    Published,
    Snapshot,
    Sought,
    Subscribed,
    TransactionDone,
    Unsubscribed,
)
from sealane.delivery.filters import Filter, compile_filter
from sealane.delivery.id_window import IdWindow, split_ids
from sealane.delivery.limits import DeliveryLimits
from sealane.delivery.offsets import span
from sealane.delivery.producers import Producers
from sealane.delivery.scanning import scan_batch
from sealane.delivery.snapshot import dump_partition, load_partition
from sealane.delivery.staging import StagedParts
from sealane.delivery.subscription import Subscription
from sealane.delivery.writers import Writers
from sealane.errors import QueueFull, SubscriptionNotFound
from sealane.message import Batch


class Publication(msgspec.Struct, frozen=True, eq=False):
    """What a publish comes to: the batch to store (None: all of it is stored already) and where each message is."""

    batch: Batch | None
    base: int
    offsets: range | list[int]
    events: list[Event]

    @property
    def durable_at(self) -> int:
        """The visible end from which on the whole publication is durable."""
        return max(self.offsets) + 1


class Partition:
    def __init__(self, topic: str, limits: DeliveryLimits | None = None) -> None:
        self.topic = topic
        self.limits = limits or DeliveryLimits()
        self.start = 0
        self.end = 0
        self.visible = 0
        self.subscriptions: dict[str, Subscription] = {}
        self.members: dict[str, Subscription] = {}
        """Positions of broadcast consumers: live state that ends with them, never journalled."""
        self.producers = Producers()
        self.ids = IdWindow(self.limits.id_window_us, self.limits.id_window_ids_max)
        self.transactions = IdWindow(self.limits.transaction_window_us, self.limits.id_window_ids_max)
        self.writers = Writers()
        self.staged = StagedParts(self.limits.transaction_window_us)
        self.priorities = Priorities()
        self.unplain = BitMap64()
        """Messages of batches that a scan must look into."""
        self.addressed: list[tuple[int, int, str]] = []
        """Runs that are for one subscription only, in order."""
        self.lost: list[tuple[int, int]] = []
        self._filters: dict[str, Filter] = {}

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self, batch: Batch, now_us: int) -> Publication:
        """Plan where the batch goes, unless it, or some of it, is here already. The events are not applied yet."""
        meta = batch.meta
        if meta.producer is not None and meta.sequence is not None:
            known = self.producers.repeated(meta.producer, meta.sequence)
            if known is not None:
                return self._repeated(batch, *known)
        base = self.end
        offsets: range | list[int] = range(base, base + len(batch))
        ids: bytes | None = None
        if meta.given_ids:
            batch, offsets = self._without_repeats(batch)
            if len(batch) == 0:
                return Publication(None, base, offsets, [])
            ids = b"".join(batch.ids())
        dropped = self._make_room(len(batch), meta.only, now_us)
        published = Published(
            base,
            len(batch),
            now_us,
            plain=batch.traits.plain and meta.only is None,
            producer=meta.producer,
            sequence=meta.sequence,
            ids=ids,
            only=meta.only,
        )
        return Publication(batch, base, offsets, [published, *dropped])

    def publish_all(self, batches: Sequence[Batch], now_us: int) -> list[Event]:
        """Plan batches that are new, and have generated ids, one after the other from the end of the log on."""
        dropped = self._make_room(sum(map(len, batches)), None, now_us)
        events: list[Event] = []
        base = self.end
        for batch in batches:
            events.append(Published(base, len(batch), now_us, plain=batch.traits.plain))
            base += len(batch)
        return [*events, *dropped]

    def _repeated(self, batch: Batch, base: int, count: int) -> Publication:
        """The batch is here already, at [base, base + count), unless some of its ids had been here before that."""
        if count == len(batch):
            return Publication(None, base, range(base, base + count), [])
        found = map(self.ids.find, batch.ids())
        return Publication(None, base, [base if offset is None else offset for offset in found], [])

    def _without_repeats(self, batch: Batch) -> tuple[Batch, list[int]]:
        """The messages whose ids are new, and for every message of the batch where it is stored."""
        new_rows: list[int] = []
        offsets: list[int] = []
        in_batch: dict[bytes, int] = {}
        for row, identity in enumerate(batch.ids()):
            stored = self.ids.find(identity)
            if stored is None:
                stored = in_batch.get(identity)
            if stored is None:
                stored = in_batch[identity] = self.end + len(new_rows)
                new_rows.append(row)
            offsets.append(stored)
        if len(new_rows) < len(batch):
            batch = batch.take(np.array(new_rows, dtype=np.int64))
        return batch, offsets

    def _make_room(self, count: int, only: str | None, now_us: int) -> list[Dropped]:
        """What must go so that `count` more fit, the oldest of them too if they are more than fit at all."""
        limit = self.limits.messages_max
        if limit is None:
            return []
        over = {
            subscription: depth + count - limit
            for subscription in self.subscriptions.values()
            if only in (None, subscription.name) and (depth := subscription.depth(self.end)) + count > limit
        }
        if over and self.limits.when_full == "refuse":
            raise QueueFull(self.topic, limit, max(over.values()) + limit - count)
        dropped = (subscription.oldest(excess, self.end + count, now_us) for subscription, excess in over.items())
        return [event for event in dropped if event is not None]

    def room(self) -> int | None:
        """How many more messages fit before publishes are refused; None if they never are."""
        limit = self.limits.messages_max
        if limit is None or self.limits.when_full != "refuse":
            return None
        deepest = max((subscription.depth(self.end) for subscription in self.subscriptions.values()), default=None)
        return None if deepest is None else max(0, limit - deepest)

    def committed(self, visible: int) -> None:
        """Everything below `visible` is durable: consumers may have it."""
        self.visible = max(self.visible, visible)

    # --- subscriptions ------------------------------------------------------------------------------------------------

    def subscription(self, name: str) -> Subscription:
        found = self.subscriptions.get(name) or self.members.get(name)
        if found is None:
            raise SubscriptionNotFound(f"{self.topic}:{name}")
        return found

    def subscribe(self, name: str, config: SubscriptionConfig, floor: int) -> Subscribed:
        event = Subscribed(name, config, floor)
        self.apply(event)
        return event

    def join(self, member: str, config: SubscriptionConfig, floor: int) -> Subscription:
        """A position for one broadcast consumer, for as long as it stays."""
        subscription = self._new_subscription(member, config, floor)
        self.members[member] = subscription
        return subscription

    def _new_subscription(self, name: str, config: SubscriptionConfig, floor: int) -> Subscription:
        subscription = Subscription(name, config, floor, self.priorities)
        self._pass_over_lost(subscription)
        return subscription

    def _pass_over_lost(self, subscription: Subscription) -> None:
        for start, stop in self.lost:
            subscription.pass_over(span(start, stop))

    def advance(self, subscription: Subscription, reader: str) -> int | None:
        """Scan as far as that needs no data. Returns the offset whose batch the scan needs next; None at the end.

        `reader` is the name by which messages are addressed to this subscription.
        """
        needs_data = subscription.config.filter is not None or subscription.config.mode == "key-shared"
        while subscription.scanned < self.visible:
            at = subscription.scanned = max(subscription.scanned, subscription.settled.floor)
            if at >= self.visible:
                break
            skip = self._not_for(reader, at)
            if skip is not None:
                subscription.pass_over(span(at, skip))
                subscription.scanned = skip
                continue
            if needs_data:
                return at
            odd = self._next_unplain(at)
            if odd == at:
                return at
            subscription.scan_plain(min(odd, self.visible))
        return None

    def is_plain_from(self, offset: int) -> bool:
        """Whether everything from here on is for everyone, and no scan has to look into it."""
        return not self.addressed and (not self.unplain or self.unplain.max() < offset)

    def scan(self, subscription: Subscription, base: int, batch: Batch, now_us: int) -> list[Expired]:
        """Look into the batch that `advance` asked for."""
        following = bisect_right(self.addressed, subscription.scanned, key=_run_start)
        stop = self.visible
        if following < len(self.addressed):
            stop = min(stop, self.addressed[following][0])
        return scan_batch(
            subscription,
            base,
            batch,
            visible=stop,
            now_us=now_us,
            matching=self._filter(subscription.config.filter),
            priorities=self.priorities,
        )

    def _filter(self, expression: str | None) -> Filter | None:
        if expression is None:
            return None
        compiled = self._filters.get(expression)
        if compiled is None:
            compiled = self._filters[expression] = compile_filter(expression)
        return compiled

    def _next_unplain(self, at: int) -> int:
        if not self.unplain or self.unplain.max() < at:
            return self.visible
        return int(self.unplain.next_set_bit(at))

    def _not_for(self, reader: str, at: int) -> int | None:
        """The end of the run around `at` that is addressed to someone else."""
        index = bisect_right(self.addressed, at, key=_run_start) - 1
        if index < 0:
            return None
        _, stop, only = self.addressed[index]
        return min(stop, self.visible) if at < stop and only != reader else None

    # --- transactions -------------------------------------------------------------------------------------------------

    def transaction_done(self, transaction: str) -> bool:
        return self.transactions.find(_digest(transaction)) is not None

    def epoch_done(self, writer: str, epoch: int) -> bool:
        return self.writers.is_done(_digest(writer), epoch)

    # --- events -------------------------------------------------------------------------------------------------------

    def lose(self, start: int, stop: int, now_us: int) -> Lost:
        """The engine cannot give these messages back: pass over them everywhere."""
        event = Lost(start, stop, now_us)
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        match event:
            case Published():
                self._published(event)
            case Subscribed(subscription=name, config=config, floor=floor):
                self.subscriptions[name] = self._new_subscription(name, config, floor)
            case Unsubscribed(subscription=name):
                self.subscriptions.pop(name, None)
            case Lost(start=start, stop=stop):
                self._lost(start, stop)
            case TransactionDone(transaction=transaction, time_us=time_us):
                self.transactions.add([_digest(transaction)], 0, time_us)
            case EpochDone(writer=writer, epoch=epoch):
                self.writers.remember(_digest(writer), epoch)
            case BatchStaged() | PartsEnded() | PublishDecided() | PublishAdvanced():
                self.staged.apply(event)
            case Snapshot(state=state):
                load_partition(self, state)
            case _:
                subscription = self.subscriptions.get(event.subscription) or self.members.get(event.subscription)
                if subscription is not None:
                    subscription.apply(event)
                    if isinstance(event, Sought):
                        self._pass_over_lost(subscription)

    def _published(self, event: Published) -> None:
        stop = event.base + event.count
        self.end = max(self.end, stop)
        if not event.plain:
            self.unplain.add_range(event.base, stop)
        if event.only is not None:
            self.addressed.append((event.base, stop, event.only))
        if event.producer is not None and event.sequence is not None:
            self.producers.remember(event.producer, event.sequence, event.base, event.count)
        if event.ids is not None:
            self.ids.add(split_ids(event.ids), event.base, event.time_us)

    def _lost(self, start: int, stop: int) -> None:
        self.lost.append((start, stop))
        gone = span(start, stop)
        for subscription in (*self.subscriptions.values(), *self.members.values()):
            subscription.lose(gone)

    def configure(self, limits: DeliveryLimits) -> None:
        self.limits = limits
        self.ids.window_us, self.ids.ids_max = limits.id_window_us, limits.id_window_ids_max
        self.transactions.window_us = limits.transaction_window_us
        self.transactions.ids_max = limits.id_window_ids_max

    # --- recovery and upkeep ------------------------------------------------------------------------------------------

    def recovered(self, start: int, end: int) -> None:
        """The fold is done; the log spans [start, end). Live state begins empty."""
        self.start = start
        self.end = max(self.end, end)
        self.visible = self.end
        for subscription in self.subscriptions.values():
            # Only what all had settled was trimmed, and what a filter rejects is settled without an event.
            subscription.lose(span(subscription.settled.floor, start))
            subscription.forget_live_state()

    def snapshot(self) -> Snapshot:
        return Snapshot(dump_partition(self))

    def settled_floor(self) -> int:
        """Below this every subscription has settled everything, and nothing is staged."""
        floors = [reader.settled.floor for reader in (*self.subscriptions.values(), *self.members.values())]
        return min([*floors, self.staged.floor(self.end)])

    def trimmed(self, start: int) -> None:
        """The log begins at `start` now: forget what only described older messages."""
        self.start = max(self.start, start)
        self.unplain.remove_range(0, self.start)
        self.priorities.forget_below(self.start)
        self.addressed = [run for run in self.addressed if run[1] > self.start]
        self.lost = [run for run in self.lost if run[1] > self.start]
        for reader in (*self.subscriptions.values(), *self.members.values()):
            reader.lose(span(reader.settled.floor, self.start))


def _run_start(run: tuple[int, int, str]) -> int:
    return run[0]


def _digest(transaction: str) -> bytes:
    return hashlib.blake2b(transaction.encode(), digest_size=16).digest()
