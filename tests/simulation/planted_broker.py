"""Planted bugs of the broker: each patches one decision of the real code, as a plausible mistake would."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pyroaring import BitMap64

from sealane.delivery import scanning
from sealane.delivery.attempts import Attempts
from sealane.delivery.id_window import IdWindow
from sealane.delivery.keyed import KeyedBacklog, _Lane
from sealane.delivery.offsets import take_first
from sealane.delivery.partition import Partition
from sealane.delivery.producers import Producers
from sealane.delivery.settled import SettledSet
from sealane.delivery.subscription import Subscription
from sealane.engine.local import LocalEngine, reading, recovery
from sealane.engine.local.record import checksum
from sealane.node import burial, redrive, transactions
from sealane.node.consumers import Consumer, Group
from sealane.node.owner import PartitionOwner


def replacing(owner: Any, name: str, make: Any) -> Any:
    """Plant `make(original)` in place of `owner.name`."""

    @contextmanager
    def plant() -> Iterator[None]:
        with patch.object(owner, name, make(getattr(owner, name))):
            yield

    return plant


def acks_before_commit(original: Any) -> Any:
    async def flush(self: PartitionOwner) -> None:
        await asyncio.sleep(0)

    return flush


def off_by_one(original: Any) -> Any:
    def add(self: SettledSet, offsets: BitMap64) -> None:
        original(self, offsets)
        if offsets and offsets.max() % 7 == 3:
            original(self, BitMap64([offsets.max() + 1]))

    return add


def lease_not_checked(original: Any) -> Any:
    def ack(self: Subscription, lease: int, offsets: BitMap64 | None, now_us: int) -> Any:
        if offsets is not None and (elsewhere := offsets - self.leases.held(lease, offsets)):
            for other in [one.id for one in self.leases.by_id.values() if one.offsets.intersect(elsewhere)]:
                return original(self, other, elsewhere, now_us)
        return original(self, lease, offsets, now_us)

    return ack


def forgets(original: Any) -> Any:
    def load(self: Any, dumped: Any) -> None: ...

    return load


def journal_without_its_end(original: Any) -> Any:
    async def read_journal(self: LocalEngine, partition: Any, offset: int, **more: Any) -> list[tuple[int, bytes]]:
        entries: list[tuple[int, bytes]] = await original(self, partition, offset, **more)
        return entries[:1] if offset else entries

    return read_journal


def trims_too_far(original: Any) -> Any:
    async def trim(self: LocalEngine, partition: Any, *, messages_before: int = 0, journal_before: int = 0) -> None:
        more = journal_before + 1 if journal_before else 0
        await original(self, partition, messages_before=messages_before, journal_before=more)

    return trim


def checksum_unchecked(original: Any) -> Any:
    def read(sources: Any, row: Any) -> bytes:
        raw: bytes = sources.file(row.file).read_at(row.position, row.length)
        assert checksum(raw) is not None
        return raw

    return read


def half_of_it(original: Any) -> Any:
    def commit_together(engine: Any, shares: Sequence[Any]) -> Any:
        return original(engine, shares[:-1] if len(shares) > 1 else shares)

    return commit_together


def nobody(original: Any) -> Any:
    return lambda self, *arguments: BitMap64()


def no_filter(original: Any) -> Any:
    return lambda self, expression: None


def next_one(original: Any) -> Any:
    def join(self: Partition, member: str, config: Any, floor: int) -> Subscription:
        joined: Subscription = original(self, member, config, floor + (self.end > floor))
        return joined

    return join


def everyone(original: Any) -> Any:
    def takers(self: Group) -> list[Consumer]:
        return [consumer for consumer in self.consumers.values() if consumer.credit > 0]

    return takers


def the_end(original: Any) -> Any:
    return lambda self: self.end


def never(value: Any) -> Any:
    return lambda original: lambda *arguments: value


@contextmanager
def past_a_retry() -> Iterator[None]:
    with (
        patch.object(_Lane, "open", property(lambda self: bool(self.ready))),
        patch.object(_Lane, "take_first", lambda self, count: take_first(self.ready, count)),
    ):
        yield


def as_seen_from(moment_us: int) -> Any:
    def make(original: Any) -> Any:
        def scan(self: Partition, subscription: Subscription, base: int, batch: Any, now_us: int) -> Any:
            return original(self, subscription, base, batch, moment_us)

        return scan

    return make


def the_last_of_it(original: Any) -> Any:
    return lambda engine, shares: original(engine, shares[-1:])


BROKER_BUGS: dict[str, Any] = {
    "confirms acks before they are committed": replacing(PartitionOwner, "flush", acks_before_commit),
    "settles one message too many": replacing(SettledSet, "add", off_by_one),
    "lets anyone acknowledge": replacing(Subscription, "ack", lease_not_checked),
    "forgets given ids in a snapshot": replacing(IdWindow, "load", forgets),
    "forgets producers in a snapshot": replacing(Producers, "load", forgets),
    "ignores the journal behind a snapshot": replacing(LocalEngine, "read_journal", journal_without_its_end),
    "trims the snapshot with what it replaces": replacing(LocalEngine, "trim", trims_too_far),
    "serves what fails its checksum": replacing(reading, "_checked", checksum_unchecked),
    "trusts what a failed sync left in the page cache": replacing(recovery, "_write_again", never(None)),
    "commits half a transaction": replacing(transactions, "commit_together", half_of_it),
    "settles the dead without burying them": replacing(burial, "commit_together", the_last_of_it),
    "drives dead letters back and keeps them": replacing(redrive, "commit_together", half_of_it),
    "forgets which transactions are done": replacing(Partition, "transaction_done", never(False)),
    "lets a key's later messages stay out": replacing(KeyedBacklog, "later_of_key", nobody),
    "grants a key past what waits for a retry": past_a_retry,
    "delivers what the filter rejects": replacing(Partition, "_filter", no_filter),
    "gives a message any number of attempts": replacing(Attempts, "failed_at_least", nobody),
    "skips a message for a broadcast consumer": replacing(Partition, "join", next_one),
    "serves every consumer of an exclusive subscription": replacing(Group, "takers", everyone),
    "lets unsettled messages go by retention": replacing(Partition, "settled_floor", the_end),
    "stores a resent batch twice": replacing(Producers, "repeated", never(None)),
    "does not wait with delayed messages": replacing(Partition, "scan", as_seen_from(1 << 60)),
    "delivers what has expired": replacing(scanning, "_watch_expiry", never([])),
}
