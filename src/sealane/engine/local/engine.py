"""The local engine: every partition's logs in one write-ahead log, on one machine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sealane.engine.backup_report import BackupReport, Progress
from sealane.engine.contract import Append, Opened, Packed, PartitionKey, Stored, Usage, Value
from sealane.engine.local.background import Joints, MakeCompactor, arrange
from sealane.engine.local.backup_online import OnlineBackup
from sealane.engine.local.compactor_process import Compactor
from sealane.engine.local.files import Files
from sealane.engine.local.flush_policy import FlushPolicy
from sealane.engine.local.group_commit import GroupCommit
from sealane.engine.local.partition import PartitionLogs, reserve_all
from sealane.engine.local.reads import Reads
from sealane.engine.local.recovery import Quarantined, RecoveryReport
from sealane.engine.local.runner import Runner, ThreadRunner
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.start import Start
from sealane.engine.local.tail import Tail
from sealane.engine.local.trims import Trim
from sealane.engine.local.underway import Underway
from sealane.engine.local.writer import GroupWriter, Landed, Pending
from sealane.engine.watch import EngineWatch
from sealane.errors import Closed, Fenced, StorageError, StorageFailed, StorageFull
from sealane.log import get_log
from sealane.prompt import Prompt

_log = get_log("sealane.engine")

T = TypeVar("T")

EPOCHS_A_BOOT = 1 << 20
"""An epoch is the number of the start times this, plus a count: it grows over restarts with one write a start."""
APPEND_OVERHEAD_BYTES = 512
"""About what an append takes in a record beside its data: head, tail copy, seal, padding."""


class LocalEngine:
    """Implements `Engine` on a data directory. Make one with `LocalEngine.start`; it belongs to one event loop."""

    @classmethod
    async def start(
        cls,
        files: Files,
        *,
        settings: StorageSettings,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        runner: Runner | None = None,
        compactor: Compactor | MakeCompactor | None = None,
    ) -> LocalEngine:
        """Lock the directory, check its key, recover its log, and be ready.

        `clock` gives microseconds. `runner` takes the place of threads. `compactor` (or what makes one, once the keys
        are there) takes the place of the helper process, which only a directory on a real disk can have.

        Raises `DataDirectoryInUse`, `KeyUnavailable`, `FormatTooNew`, `CorruptData`, before anything is served.
        """
        files.acquire()
        own = [] if runner is not None else [ThreadRunner("commit"), ThreadRunner("disk", threads=2)]
        try:
            start = Start(files, settings, clock, entropy)
            await (runner or own[1]).run(start.run)
            return cls(start, runner or own[0], runner or own[1], own, compactor)
        except BaseException:
            for each in own:
                each.close()
            files.release()
            raise

    def __init__(
        self,
        start: Start,
        commit_runner: Runner,
        disk_runner: Runner,
        own_runners: Sequence[ThreadRunner],
        compactor: Compactor | MakeCompactor | None,
    ) -> None:
        settings = start.settings
        self.watch = EngineWatch()
        self._loop = asyncio.get_running_loop()
        self._files = start.files
        self._settings = settings
        self._metadata = start.metadata
        self.sealer = start.sealer
        self._partitions = start.partitions
        self._dropped = start.dropped
        self._wal = start.wal
        self._sources = start.sources
        self._space = start.space
        self._tail = Tail(settings.tail_bytes_max)
        self._disk = disk_runner
        self._own_runners = own_runners
        self._epoch_base = start.boot * EPOCHS_A_BOOT
        self._epochs = itertools.count(1)
        self._puts = Underway()
        self._failure: StorageFailed | None = None
        self._closing: asyncio.Future[None] | None = None
        self.recovery: RecoveryReport = start.recovered.report
        """What opening the directory found and did."""
        self.quarantined: list[Quarantined] = list(self.recovery.quarantined)
        """Every stored entry found damaged, at opening or by a read since."""
        self._reads = Reads(self._partitions, self._sources, self.sealer, disk_runner, self.quarantined)
        self._backup = OnlineBackup(
            start.files,
            settings,
            metadata=self._metadata,
            wal=self._wal,
            sources=self._sources,
            runner=disk_runner,
            clock=start.clock,
        )
        self.housekeeping, self.keys = arrange(
            start,
            compactor,
            disk_runner,
            Joints(
                watch=self.watch,
                generation=self._next_epoch,
                stop=self._stop,
                settled=self._all_settled,
                end_segment=self._end_segment,
                drop=self.drop,
                is_backing_up=lambda: self._backup.is_under_way,
            ),
        )
        self._group = GroupCommit[Pending, Landed](
            GroupWriter(self._wal, self.sealer).write,
            self._landed,
            self._failed,
            runner=commit_runner,
            policy=FlushPolicy(
                settings.commit,
                inline_bytes_max=settings.inline_bytes_max,
                inline_seconds_max=settings.inline_seconds_max,
            ),
            group_bytes_max=settings.group_bytes_max,
            clock=start.clock,
            measured=self._measured,
        )
        self.housekeeping.start()

    @property
    def atomic_across_partitions(self) -> bool:
        return True

    @property
    def failure(self) -> BaseException | None:
        return self._failure

    # --- partitions ---------------------------------------------------------------------------------------------

    async def open(self, partition: PartitionKey, *, sealed: bool = True) -> Opened:
        self._check_writable()
        if partition in self._dropped:
            raise StorageError(f"{partition} was dropped; a topic that is made again has another incarnation")
        while sealed and not self.sealer.keyring.has(partition.domain):
            await self._disk.run(lambda: self.sealer.ensure(partition.domain))
        # From here to its place among the partitions nothing comes between: its key cannot be destroyed unnoticed.
        self.keys.check_open(partition.domain)
        logs = self._partitions.get(partition)
        if logs is None:
            logs = self._partitions[partition] = PartitionLogs(partition)
        epoch = logs.epoch = self._next_epoch()
        # What the earlier owner called before it was fenced lands before this one sees the log.
        await self._group.barrier()
        self._check_writable()
        if logs.epoch == epoch:
            logs.sealed = sealed
        return logs.opened(epoch)

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        if self._failure is not None or self._closing is not None:
            self._check_writable()
        logs = [self._owned(append) for append in appends]
        size = 0
        publishes = False
        for append in appends:
            size += APPEND_OVERHEAD_BYTES
            if append.batch is not None:
                publishes = True
                size += append.batch.nbytes
            if append.journal is not None:
                size += len(append.journal)
        lacking = self._space.full
        # While the disk is full, what is left of the active segment is kept for acks: they are what frees space.
        if lacking is not None and (publishes or self._group.bytes_waiting + size > self._wal.room_bytes):
            raise lacking.error()
        if len(logs) == 1:
            logs[0].reserve(appends[0])
        else:
            reserve_all(logs, appends)
        done: Prompt[None] = Prompt(loop=self._loop)
        self._group.submit(Pending(appends, logs, size, done))
        return done

    def _owned(self, append: Append) -> PartitionLogs:
        logs = self._partitions.get(append.partition)
        if logs is None:
            raise Fenced(str(append.partition), append.epoch, 0)
        return logs

    def _refusal(self) -> StorageFailed:
        """A new error, as `failure` says: one that is raised twice would carry the first one's traceback."""
        refusal = StorageFailed(str(self._failure))
        refusal.__cause__ = self._failure.__cause__ if self._failure is not None else None
        return refusal

    def _check_writable(self) -> None:
        if self._failure is not None:
            raise self._refusal()
        if self._closing is not None:
            raise Closed("the engine is closed")

    def _landed(self, group: list[Pending], landed: Landed) -> None:
        try:
            self._take_in(group, landed)
        except Exception as error:
            # On disk it is, in the index perhaps not: nobody may build on what memory says now.
            self._stop("commit", error)
            raise

    def _take_in(self, group: list[Pending], landed: Landed) -> None:
        segment = landed.segment
        if segment is not None and not len(segment.index):
            self._sources.add(segment.number, segment.name)
        for bundle, row in landed.bundles:
            logs = bundle.logs
            logs.log(bundle.kind).append(row)
            for stored, item in zip(bundle.batches, bundle.items, strict=False):
                self._tail.add(logs.tail, stored, len(item))
        # It is durable and can be read: tell those who wait. The segment's own index is of use once it is full.
        for pending in group:
            if not pending.done.done():
                pending.done.set_result(None)
        if segment is not None:
            for bundle, row in landed.bundles:
                segment.index.add(bundle.logs.key, bundle.kind, row)
        if self._wal.closed:
            self.housekeeping.segment_filled()

    def _failed(self, everything: list[Pending], error: Exception) -> None:
        if isinstance(error, StorageFull):
            # Nothing reached the disk, so nothing is unsure: these commits did not happen, and the engine goes on.
            for pending in everything:
                for logs in pending.logs:
                    logs.forget_reserved()
            self.housekeeping.wake()
        elif self._failure is None:
            self._failure = StorageFailed(
                f"writing to {self._files.location!r} failed ({error}): nothing more is written, since what a failed "
                "write or sync has left on disk is unknown; check the disk, then restart"
            )
            self._failure.__cause__ = error
            _log.critical("the engine takes no more writes", reason=str(self._failure), exc_info=error)
        for pending in everything:
            if not pending.done.done():
                pending.done.set_exception(error if self._failure is None else self._refusal())
                # Who called and went away is not to be told by the loop's last resort.
                pending.done.exception()

    def _stop(self, task: str, error: Exception) -> None:
        """A task crashed where going on would be wrong: no more writes, and whoever watches is told."""
        if self._failure is None:
            self._failure = StorageFailed(
                f"{task} on {self._files.location!r} crashed ({type(error).__name__}): nothing more is written, "
                "since memory may differ from what is stored; restart, and report the traceback in the log"
            )
            self._failure.__cause__ = error
        self.watch.failed(task, error)

    def _measured(self, commits: int, group_bytes: int, seconds: float) -> None:
        self.watch.committed(commits, group_bytes, seconds, self._wal.sync_seconds)

    def _next_epoch(self) -> int:
        count = next(self._epochs)
        if count == EPOCHS_A_BOOT:
            self._epoch_base = self._metadata.boot() * EPOCHS_A_BOOT
            self._epochs = itertools.count(1)
            count = next(self._epochs)
        return self._epoch_base + count

    # --- reading ------------------------------------------------------------------------------------------------

    def recent(self, partition: PartitionKey, offset: int) -> Stored | None:
        logs = self._partitions.get(partition)
        return logs.tail.find(offset) if logs is not None else None

    async def read(
        self, partition: PartitionKey, offset: int, *, bytes_max: int, stop: int | None = None
    ) -> list[Stored]:
        return await self._reads.messages(partition, offset, bytes_max, stop)

    async def read_packed(
        self, partition: PartitionKey, offset: int, *, bytes_max: int, stop: int | None = None
    ) -> list[Stored | Packed]:
        return await self._reads.packed(partition, offset, bytes_max, stop)

    async def read_journal(
        self, partition: PartitionKey, offset: int, *, bytes_max: int | None = None
    ) -> list[tuple[int, bytes]]:
        return await self._reads.journal(partition, offset, bytes_max)

    def journal_at(self, partition: PartitionKey, time_us: int) -> int:
        logs = self._partitions.get(partition)
        return logs.journal.offset_at(time_us) if logs is not None else 0

    async def offset_at(self, partition: PartitionKey, time_us: int) -> int:
        logs = self._partitions.get(partition)
        return logs.messages.offset_at(time_us) if logs is not None else 0

    def committed_at(self, partition: PartitionKey, offset: int) -> int | None:
        logs = self._partitions.get(partition)
        return logs.messages.committed_at(offset) if logs is not None else None

    # --- forgetting ---------------------------------------------------------------------------------------------

    async def trim(
        self, partition: PartitionKey, *, messages_before: int = 0, journal_before: int = 0, journal_folded: int = 0
    ) -> None:
        self._check_writable()
        logs = self._partitions.get(partition)
        if logs is None:
            return
        messages_before = min(messages_before, logs.messages.end)
        journal_before = min(journal_before, logs.journal.end)
        journal_folded = min(journal_folded, logs.journal.end)
        forgets = messages_before > logs.messages.start or journal_before > logs.journal.start
        if forgets or journal_folded > logs.journal_folded:
            trim = Trim(messages_before, journal_before, journal_folded)
            await self._disk.run(lambda: self._metadata.save_trim(partition, trim))
            logs.trim(trim)
        if forgets:
            self.housekeeping.wake()

    async def drop(self, partition: PartitionKey) -> None:
        self._check_writable()
        logs = self._partitions.pop(partition, None)
        if logs is None:
            return
        self._dropped.add(partition)
        await self._disk.run(lambda: self._metadata.save_drop(partition))
        await self._group.barrier()
        logs.trim(Trim(logs.messages.end, logs.journal.end))
        self.housekeeping.wake()

    # --- compare-and-set values ---------------------------------------------------------------------------------

    async def get(self, key: str) -> Value | None:
        return await self._ask(lambda: self._metadata.get(key))

    async def put(self, key: str, data: bytes, *, expected: int, lease_seconds: float | None = None) -> int:
        self._check_writable()
        return await self._puts.run(
            self._ask(lambda: self._metadata.put(key, data, expected=expected, lease_seconds=lease_seconds))
        )

    async def delete(self, key: str, *, expected: int) -> None:
        self._check_writable()
        await self._ask(lambda: self._metadata.delete(key, expected=expected))

    async def scan(self, prefix: str) -> list[tuple[str, Value]]:
        return await self._ask(lambda: self._metadata.scan(prefix))

    async def _ask(self, question: Callable[[], T]) -> T:
        if self._closing is not None:
            raise Closed("the engine is closed")
        return await self._disk.run(question)

    # --- sealing anew -------------------------------------------------------------------------------------------

    async def _all_settled(self) -> None:
        """Return once all that was sealed before, be it for a record or for a value, is in its place or has failed."""
        await self._group.barrier()
        await self._puts.settled()

    async def _end_segment(self) -> None:
        """Let the next record begin a new segment, if there is one ready: nobody is to be refused for want of one."""
        self._check_writable()
        if self._wal.spare_ready:
            self._wal.ending = True
            done: Prompt[None] = Prompt(loop=self._loop)
            self._group.submit(Pending((), (), 0, done))
            await done

    # --- backup -------------------------------------------------------------------------------------------------

    async def backup(self, target: Path, *, include_key: bool = True, progress: Progress | None = None) -> BackupReport:
        """As `BacksUp.backup` promises. It reads only, so an engine that has stopped taking writes can do it too."""
        if self._closing is not None:
            raise Closed("the engine is closed")
        return await self._backup.run(target, include_key=include_key, progress=progress)

    # --- life cycle ---------------------------------------------------------------------------------------------

    def usage(self) -> Usage:
        lacking = self._space.full
        full = None if lacking is None else str(lacking.error())
        return Usage(self._space.bytes_used, self._settings.disk_bytes_max, full)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._group.barrier()
        await self._backup.close()
        await self.housekeeping.close()
        if self._failure is None and not self._wal.marked:
            try:
                await self._disk.run(lambda: self._wal.write([]))
            except (OSError, StorageFull) as error:
                _log.warning("the closing mark could not be written; nothing is lost", reason=str(error))
        for runner in self._own_runners:
            runner.close()
        self._wal.close()
        self._sources.close()
        self._metadata.close()
        self._files.release()
