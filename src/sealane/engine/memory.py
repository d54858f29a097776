"""The memory engine: the whole contract in plain Python objects, for topics that need not survive the process."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence

from sealane.engine.contract import Append, Opened, PartitionKey, Stored, Usage, Value
from sealane.engine.watch import EngineWatch
from sealane.errors import Closed, Fenced, OffsetMismatch, StorageError, StorageFull, VersionMismatch
from sealane.prompt import Prompt


class _Logs:
    """One partition. `bases` and `times` run beside `batches`, for bisection."""

    __slots__ = (
        "bases",
        "batches",
        "end",
        "epoch",
        "journal",
        "journal_folded",
        "journal_start",
        "journal_times",
        "start",
        "times",
    )

    def __init__(self) -> None:
        self.epoch = 0
        self.start = 0
        self.end = 0
        self.bases: list[int] = []
        self.times: list[int] = []
        self.batches: list[Stored] = []
        self.journal: list[bytes] = []
        self.journal_times: list[int] = []
        self.journal_start = 0
        self.journal_folded = 0

    @property
    def journal_end(self) -> int:
        return self.journal_start + len(self.journal)

    def find(self, offset: int) -> int:
        """The number of the batch that holds `offset`, or of the first one after it."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def trim(self, messages_before: int, journal_before: int) -> int:
        """Forget what is below; returns how many bytes that frees."""
        freed = 0
        messages_before = min(messages_before, self.end)
        if messages_before > self.start:
            self.start = messages_before
            gone = bisect_right(self.bases, messages_before)
            while gone and self.batches[gone - 1].stop > messages_before:
                gone -= 1
            freed += sum(stored.batch.nbytes for stored in self.batches[:gone])
            del self.bases[:gone], self.times[:gone], self.batches[:gone]
        entries = min(journal_before, self.journal_end) - self.journal_start
        if entries > 0:
            freed += sum(map(len, self.journal[:entries]))
            del self.journal[:entries], self.journal_times[:entries]
            self.journal_start += entries
        return freed


class MemoryEngine:
    """Implements `Engine` in memory. A commit is done when it is called; waiting for it costs nothing."""

    def __init__(self, clock: Callable[[], int], *, bytes_max: int | None = None) -> None:
        self.watch = EngineWatch()
        self._clock = clock
        self._bytes_max = bytes_max
        self._bytes_used = 0
        self._time_us = 0
        self._epochs = 0
        self._partitions: dict[PartitionKey, _Logs] = {}
        self._dropped: set[PartitionKey] = set()
        self._values: dict[str, Value] = {}
        self._names: list[str] = []
        self._versions = 0
        self._closed = False
        self._done: Prompt[None] | None = None

    @property
    def atomic_across_partitions(self) -> bool:
        return True

    @property
    def failure(self) -> BaseException | None:
        return None

    async def open(self, partition: PartitionKey, *, sealed: bool = True) -> Opened:
        self._check_open()
        if partition in self._dropped:
            raise StorageError(f"{partition} was dropped; a topic that is made again has another incarnation")
        logs = self._partitions.setdefault(partition, _Logs())
        self._epochs += 1
        logs.epoch = self._epochs
        folded = max(logs.journal_folded, logs.journal_start)
        return Opened(logs.epoch, logs.start, logs.end, logs.journal_start, logs.journal_end, journal_folded=folded)

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        self._check_open()
        added = self._check(appends)
        # A commit never seems to be earlier than the one before it, whatever the clock does.
        time_us = self._time_us = max(self._time_us, self._clock())
        for append in appends:
            logs = self._partitions[append.partition]
            batch = append.batch
            if batch is not None and len(batch):
                logs.bases.append(logs.end)
                logs.times.append(time_us)
                logs.batches.append(Stored(logs.end, batch))
                logs.end += len(batch)
            if append.journal is not None:
                logs.journal.append(append.journal)
                logs.journal_times.append(time_us)
        self._bytes_used += added
        if self._done is None or self._done.get_loop() is not asyncio.get_running_loop():
            self._done = Prompt(loop=asyncio.get_running_loop())
            self._done.set_result(None)
        return self._done

    def _check(self, appends: Sequence[Append]) -> int:
        """Whether all of it may land, before any of it does; returns how many bytes it adds."""
        added = 0
        publishes = False
        ends: dict[PartitionKey, tuple[int, int]] = {}
        for append in appends:
            key = append.partition
            logs = self._partitions.get(key)
            if logs is None or append.epoch != logs.epoch:
                raise Fenced(str(key), append.epoch, logs.epoch if logs is not None else 0)
            end, journal_end = ends.get(key) or (logs.end, logs.journal_end)
            if append.batch is not None:
                if append.batch_offset != end:
                    raise OffsetMismatch(str(key), append.batch_offset, end)
                end += len(append.batch)
                added += append.batch.nbytes
                publishes = True
            if append.journal is not None:
                if append.journal_offset != journal_end:
                    raise OffsetMismatch(f"journal of {key}", append.journal_offset, journal_end)
                journal_end += 1
                added += len(append.journal)
            ends[key] = (end, journal_end)
        if publishes and self._bytes_max is not None and self._bytes_used + added > self._bytes_max:
            raise StorageFull(self._bytes_used, self._bytes_max, "the memory engine's bytes_max")
        return added

    async def read(
        self, partition: PartitionKey, offset: int, *, bytes_max: int, stop: int | None = None
    ) -> list[Stored]:
        logs = self._partitions.get(partition)
        if logs is None or offset >= logs.end:
            return []
        first = last = logs.find(max(offset, logs.start))
        spent = 0
        while last < len(logs.batches) and (last == first or spent < bytes_max):
            if stop is not None and logs.batches[last].base >= stop:
                break
            spent += logs.batches[last].batch.nbytes
            last += 1
        found = logs.batches[first:last]
        if found:
            found[0] = found[0].since(logs.start)
        return found

    def recent(self, partition: PartitionKey, offset: int) -> Stored | None:
        logs = self._partitions.get(partition)
        if logs is None or not logs.start <= offset < logs.end:
            return None
        return logs.batches[logs.find(offset)]

    async def read_journal(
        self, partition: PartitionKey, offset: int, *, bytes_max: int | None = None
    ) -> list[tuple[int, bytes]]:
        logs = self._partitions.get(partition)
        if logs is None:
            return []
        found: list[tuple[int, bytes]] = []
        spent = 0
        for number in range(max(offset, logs.journal_start), logs.journal_end):
            if bytes_max is not None and spent >= bytes_max:
                break
            entry = logs.journal[number - logs.journal_start]
            found.append((number, entry))
            spent += len(entry)
        return found

    def journal_at(self, partition: PartitionKey, time_us: int) -> int:
        logs = self._partitions.get(partition)
        return 0 if logs is None else logs.journal_start + bisect_left(logs.journal_times, time_us)

    async def offset_at(self, partition: PartitionKey, time_us: int) -> int:
        logs = self._partitions.get(partition)
        if logs is None:
            return 0
        number = bisect_left(logs.times, time_us)
        return max(logs.start, logs.bases[number]) if number < len(logs.bases) else logs.end

    def committed_at(self, partition: PartitionKey, offset: int) -> int | None:
        logs = self._partitions.get(partition)
        if logs is None or not logs.start <= offset < logs.end:
            return None
        return logs.times[logs.find(offset)]

    async def trim(
        self, partition: PartitionKey, *, messages_before: int = 0, journal_before: int = 0, journal_folded: int = 0
    ) -> None:
        self._check_open()
        logs = self._partitions.get(partition)
        if logs is not None:
            logs.journal_folded = max(logs.journal_folded, min(journal_folded, logs.journal_end))
            self._bytes_used -= logs.trim(messages_before, journal_before)

    async def drop(self, partition: PartitionKey) -> None:
        self._check_open()
        logs = self._partitions.pop(partition, None)
        if logs is not None:
            self._dropped.add(partition)
            self._bytes_used -= logs.trim(logs.end, logs.journal_end)

    async def get(self, key: str) -> Value | None:
        self._check_open()
        return self._value(key)

    async def put(self, key: str, data: bytes, *, expected: int, lease_seconds: float | None = None) -> int:
        self._check_open()
        self._expect(key, expected)
        self._versions += 1
        expires_us = None if lease_seconds is None else self._clock() + int(lease_seconds * 1_000_000)
        if key not in self._values:
            insort(self._names, key)
        self._values[key] = Value(bytes(data), self._versions, expires_us)
        return self._versions

    async def delete(self, key: str, *, expected: int) -> None:
        self._check_open()
        self._expect(key, expected)
        if key in self._values:
            del self._values[key]
            self._names.remove(key)

    async def scan(self, prefix: str) -> list[tuple[str, Value]]:
        self._check_open()
        found = []
        for key in self._names[bisect_left(self._names, prefix) :]:
            if not key.startswith(prefix):
                break
            value = self._value(key)
            if value is not None:
                found.append((key, value))
        return found

    def usage(self) -> Usage:
        return Usage(self._bytes_used, self._bytes_max)

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the engine is closed")

    def _value(self, key: str) -> Value | None:
        value = self._values.get(key)
        if value is None or (value.expires_us is not None and value.expires_us <= self._clock()):
            return None
        return value

    def _expect(self, key: str, expected: int) -> None:
        value = self._value(key)
        actual = 0 if value is None else value.version
        if actual != expected:
            raise VersionMismatch(key, expected, actual)
