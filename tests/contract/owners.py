"""What the suite and other tests of engines have in common: owners of partitions, batches, a clock."""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import pairwise

from sealane.engine import Append, Engine, Opened, PartitionKey
from sealane.message import Batch, Limits, Stamp, from_payloads

ORDERS = PartitionKey("default", "orders", 1, 0)
BILLS = PartitionKey("default", "bills", 1, 0)
BIG = 1 << 30


class Clock:
    """A clock that a test moves, in microseconds."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


def batch(*payloads: bytes) -> Batch:
    return from_payloads(payloads, Stamp(1_700_000_000_000_000, bytes(16)), limits=Limits())


def numbered(count: int, start: int = 0) -> Batch:
    return batch(*(b"%d" % number for number in range(start, start + count)))


class Owner:
    """The owner of one partition, which knows where its next appends must land."""

    def __init__(self, engine: Engine, partition: PartitionKey, opened: Opened) -> None:
        self.engine = engine
        self.partition = partition
        self.opened = opened
        self.epoch = opened.epoch
        self.offset = opened.end
        self.journal_offset = opened.journal_end

    @classmethod
    async def of(cls, engine: Engine, partition: PartitionKey = ORDERS, *, sealed: bool = True) -> Owner:
        return cls(engine, partition, await engine.open(partition, sealed=sealed))

    def append(self, messages: Batch | None = None, journal: bytes | None = None) -> Append:
        made = Append(self.partition, self.epoch, messages, self.offset, journal, self.journal_offset)
        self.offset += len(messages) if messages is not None else 0
        self.journal_offset += journal is not None
        return made

    def commit(self, messages: Batch | None = None, journal: bytes | None = None) -> Awaitable[None]:
        return self.engine.commit([self.append(messages, journal)])

    async def payloads(self, offset: int = 0) -> list[bytes]:
        return await payloads(self.engine, self.partition, offset)


async def payloads(engine: Engine, partition: PartitionKey, offset: int = 0) -> list[bytes]:
    """Every payload from `offset` on, after checking that what was read hangs together."""
    found: list[bytes] = []
    stored = await engine.read(partition, offset, bytes_max=BIG)
    for earlier, later in pairwise(stored):
        assert earlier.stop <= later.base
    for each in stored:
        found.extend(each.batch.payloads()[max(0, offset - each.base) :])
    return found
