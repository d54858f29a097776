"""The engine contract: where logs and small compare-and-set values live.

An engine keeps, for each partition, two logs: *messages* (batches; an offset is a message's place, dense from 0) and
the *journal* (opaque entries, numbered from 0). `commit` appends to both atomically, at expected offsets, under an
epoch. Every engine passes the same suite, `tests/contract/engine_suite.py`: what a caller may rely on is written there
and here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from sealane.engine.watch import EngineWatch
from sealane.message import Batch, decode
from sealane.prompt import Prompt
from sealane.security.at_rest.sealing import Sealer


class PartitionKey(NamedTuple):
    """Names one partition's logs. `incarnation` tells a topic from an earlier, deleted one of the same name."""

    domain: str
    topic: str
    incarnation: int
    partition: int

    def __str__(self) -> str:
        return f"{self.domain}/{self.topic}#{self.incarnation}:{self.partition}"


@dataclass(frozen=True, slots=True)
class Append:
    """What one commit adds to one partition: a batch, a journal entry, or both."""

    partition: PartitionKey
    epoch: int
    batch: Batch | None = None
    batch_offset: int = 0
    """Where the batch must land: the message log's end. Checked only when there is a batch."""
    journal: bytes | None = None
    journal_offset: int = 0
    """Where the entry must land: the journal's end. Checked only when there is an entry."""


class Span(NamedTuple):
    """A half-open run of offsets."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A partition as its new owner finds it."""

    epoch: int
    start: int
    end: int
    journal_start: int
    journal_end: int
    lost: tuple[Span, ...] = ()
    """Message offsets inside [start, end) whose bytes were damaged and are quarantined: they read as absent."""
    journal_lost: tuple[Span, ...] = ()
    journal_folded: int = 0
    """The entry that whoever owned it last said holds all that came before it; not below `journal_start`."""


class Stored(NamedTuple):
    """A batch in a log: its first message has offset `base`."""

    base: int
    batch: Batch

    @property
    def stop(self) -> int:
        return self.base + len(self.batch)

    def since(self, offset: int) -> Stored:
        """The same without what is below `offset`."""
        if offset <= self.base:
            return self
        return Stored(offset, self.batch.slice(offset - self.base, len(self.batch)))


class Packed(NamedTuple):
    """A batch in a log as it is stored: compressed."""

    base: int
    messages: int
    data: memoryview
    """Its encoding."""
    nbytes: int
    """What that unpacks to."""

    @property
    def stop(self) -> int:
        return self.base + self.messages

    def opened(self) -> Stored:
        return Stored(self.base, decode(self.data, limits=None))


class Value(NamedTuple):
    """A compare-and-set value. `expires_us` is set when it was put under a lease."""

    data: bytes
    version: int
    expires_us: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    bytes_used: int
    bytes_max: int | None
    """None: no limit of its own."""
    full: str | None = None
    """Why publishes are refused for want of room, if they are."""


@runtime_checkable
class Engine(Protocol):
    """Implemented by memory, local, and the distributed engines."""

    @property
    def atomic_across_partitions(self) -> bool:
        """Whether one `commit` may hold appends to several partitions."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Why the engine has stopped taking writes, or None."""
        ...

    @property
    def watch(self) -> EngineWatch:
        """Whom the engine tells of crashes and commits; the node sets its callbacks."""
        ...

    async def open(self, partition: PartitionKey, *, sealed: bool = True) -> Opened:
        """Make the caller the owner, under a new and higher epoch; earlier owners are fenced from here on."""
        ...

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        """Append all or nothing.

        Order is fixed by the call, not by the await: of two commits called one after the other, the first lands first.
        Checks (epoch, offsets, room) raise from the call itself: `Fenced`, `OffsetMismatch`, `StorageFull`,
        `StorageFailed`. The future resolves when the appends are durable and readable. If it raises, whether
        they happened is unknown until the partition is opened again.
        """
        ...

    async def read(
        self, partition: PartitionKey, offset: int, *, bytes_max: int, stop: int | None = None
    ) -> list[Stored]:
        """Durable batches from the one that holds `offset` on, in order, until about `bytes_max` (at least one if any).

        The first may start before `offset`, but not below the log's start; none starts at `stop` or later. An offset
        below the start reads from the start; quarantined batches are absent; at the end, or when nothing is left before
        `stop`, the list is empty.
        """
        ...

    def recent(self, partition: PartitionKey, offset: int) -> Stored | None:
        """The durable batch that holds `offset`, when it is in memory: no waiting, no decoding."""
        ...

    async def read_journal(
        self, partition: PartitionKey, offset: int, *, bytes_max: int | None = None
    ) -> list[tuple[int, bytes]]:
        """Every durable journal entry from `offset` on, with its number; quarantined entries are absent.

        With `bytes_max` it ends after about so many bytes (at least one entry, if there is any).
        """
        ...

    def journal_at(self, partition: PartitionKey, time_us: int) -> int:
        """A journal entry at or before the first one committed at or after `time_us`; the end if there is none."""
        ...

    async def offset_at(self, partition: PartitionKey, time_us: int) -> int:
        """An offset at or before the first message committed at or after `time_us`; the end if there is none."""
        ...

    def committed_at(self, partition: PartitionKey, offset: int) -> int | None:
        """When the message at `offset`, or the first one after it, was committed, in µs; None if that is not known.

        Where batches were joined since, it is the time of the last of them.
        """
        ...

    async def trim(
        self, partition: PartitionKey, *, messages_before: int = 0, journal_before: int = 0, journal_folded: int = 0
    ) -> None:
        """Allow everything below to be forgotten; reads below start there from now on. Never moves backwards.

        `journal_folded` forgets nothing: it is an entry that holds all that came before it, for `open` to tell.
        """
        ...

    async def drop(self, partition: PartitionKey) -> None:
        """Forget the partition and all of its data."""
        ...

    async def get(self, key: str) -> Value | None: ...

    async def put(self, key: str, data: bytes, *, expected: int, lease_seconds: float | None = None) -> int:
        """Set the key if its version is `expected` (0: it must not exist) and return its new version.

        Under a lease the key vanishes at now + `lease_seconds` unless it is put again. Raises `VersionMismatch`.
        Versions of one key never repeat, not even after a delete.
        """
        ...

    async def delete(self, key: str, *, expected: int) -> None: ...

    async def scan(self, prefix: str) -> list[tuple[str, Value]]:
        """The keys that start with `prefix`, in order, with their values."""
        ...

    def usage(self) -> Usage: ...

    async def close(self) -> None:
        """Finish what was called, make it durable, release everything. Idempotent."""
        ...


@runtime_checkable
class ReadsPacked(Protocol):
    """An engine that stores batches compressed, and can give them to who opens them elsewhere."""

    async def read_packed(
        self, partition: PartitionKey, offset: int, *, bytes_max: int, stop: int | None = None
    ) -> list[Stored | Packed]:
        """As `Engine.read`; `bytes_max` is of what the batches unpack to."""
        ...


@runtime_checkable
class KeepsSecrets(Protocol):
    """An engine that seals what it stores, and so can seal what others store in it."""

    @property
    def sealer(self) -> Sealer: ...
