"""What the engine does beside commits and reads: prepare segments, save indexes, give space back, compact."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping

from sealane.engine.contract import PartitionKey
from sealane.engine.local.compaction import CompactionResult, forget_removed
from sealane.engine.local.compaction_plan import Log, Plan, Source, expired, make_plan
from sealane.engine.local.compactor_process import Compactor
from sealane.engine.local.files import Files
from sealane.engine.local.index import Row
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.partition import PartitionLogs
from sealane.engine.local.reading import Sources
from sealane.engine.local.runner import Runner
from sealane.engine.local.segment import INDEX_SUFFIX
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.space import Space
from sealane.engine.local.wal import Segment, Wal
from sealane.engine.watch import EngineWatch
from sealane.errors import StorageError
from sealane.log import get_log

_log = get_log("sealane.engine")

COMPACTION_RETRY_SECONDS = 30.0
"""How long a compaction that failed, for lack of room perhaps, is left alone."""


class Housekeeping:
    """Two tasks: one for small chores, one for compaction. Whatever they meet, the log goes on, and they try again."""

    def __init__(
        self,
        files: Files,
        settings: StorageSettings,
        *,
        space: Space,
        wal: Wal,
        sources: Sources,
        metadata: Metadata,
        partitions: Mapping[PartitionKey, PartitionLogs],
        dropped: set[PartitionKey],
        closed: list[Segment],
        compacted: dict[str, tuple[int, CompactedFile]],
        runner: Runner,
        compactor: Compactor | None,
        number: Callable[[], int],
        generation: Callable[[], int],
        watch: EngineWatch,
        stop: Callable[[str, Exception], None],
    ) -> None:
        self._files = files
        self._settings = settings
        self._space = space
        self._wal = wal
        self._sources = sources
        self._metadata = metadata
        self._partitions = partitions
        self._dropped = dropped
        self._closed = closed
        self._compacted = compacted
        self._runner = runner
        self._compactor = compactor
        self._number = number
        self._generation = generation
        self._watch = watch
        self._stop = stop
        self._work = asyncio.Event()
        self._closing = False
        self._preparing = False
        self._compaction: asyncio.Task[None] | None = None
        self._applying: asyncio.Task[None] | None = None
        self._compaction_not_before = 0.0
        self._chores: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._work.set()
        self._chores = asyncio.create_task(self._look_after())

    def wake(self) -> None:
        """Something changed: data was trimmed or dropped, or there was no room."""
        self._work.set()

    def segment_filled(self) -> None:
        """A new segment is in use. Whether another can follow it is known at once: if not, this one is for acks."""
        if not self._wal.spare_ready and not self._preparing:
            self._space.full = self._space.lacking(self._wal.spare_missing_bytes)
        self._work.set()

    async def close(self) -> None:
        self._closing = True
        self._work.set()
        if self._compaction is not None:
            self._compaction.cancel()
            await asyncio.wait([self._compaction])
        if self._applying is not None:
            await asyncio.wait([self._applying])
        if self._chores is not None:
            await self._chores
        if self._compactor is not None:
            await self._compactor.close()

    # --- chores -------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing:
            self._work.clear()
            try:
                await self._prepare_spare()
                await self._save_indexes()
                await self._give_space_back()
                troubled = False
                self._start_compaction()
            except (OSError, StorageError):
                _log.exception("a chore failed; it is tried again in a moment")
                troubled = True
            except Exception as error:
                # The next commits need a segment to go to: whatever this was, there has to be another try.
                self._watch.crashed("housekeeping", error)
                troubled = True
            if self._closing:
                return
            retry = None
            if self._space.full is not None or troubled:
                retry = loop.call_later(self._settings.space_retry_seconds, self._work.set)
            await self._work.wait()
            if retry is not None:
                retry.cancel()

    async def _prepare_spare(self) -> None:
        """Have the next segment ready before it is needed; that it cannot be had is what "full" means."""
        self._preparing = True
        try:
            await self._fill_spare()
        finally:
            self._preparing = False

    async def _fill_spare(self) -> None:
        while not self._wal.spare_ready and not self._closing:
            lacking = self._wal.claim_spare()
            if lacking is not None:
                self._wal.discard_spare()
                self._space.full = lacking
                return
            try:
                await self._runner.run(self._wal.fill_spare)
            except OSError as error:
                if not self._space.is_full(error):
                    raise
                self._space.full = self._space.exhausted()
                return
        self._space.full = None

    async def _save_indexes(self) -> None:
        while self._wal.closed:
            segment = self._wal.closed.pop(0)
            # Also one that holds nothing but marks, which no row points to: a backup may keep it by its name.
            self._sources.add(segment.number, segment.name)
            self._closed.append(segment)
        # A copy: compaction takes segments off the list while an index is being written.
        for segment in list(self._closed):
            if not segment.indexed and not self._closing:
                data = segment.index.encode()
                name = segment.name + INDEX_SUFFIX
                try:
                    await self._runner.run(lambda data=data, name=name: self._save(name, data))  # type: ignore[misc]
                except OSError as error:
                    if not self._space.is_full(error):
                        raise
                    # Without it the segment is scanned at the next start: slower, nothing worse.
                    return
                segment.indexed = True

    def _save(self, name: str, data: bytes) -> None:
        draft = name + ".draft"
        file = self._files.open(draft, create=True)
        try:
            file.truncate(0)
            file.write_at(0, [data])
            file.sync()
        finally:
            file.close()
        self._files.rename(draft, name)

    async def _give_space_back(self) -> None:
        """Remove what nobody needs, whole files at a time. It needs no room to work in, so it helps on a full disk."""
        if self._is_compacting():
            # It reads these files; it leaves out what is no longer needed, and wakes us when it is done.
            return
        trims = self._trims()
        for segment in [segment for segment in self._closed if self._is_dead(segment)]:
            self._closed.remove(segment)
            self._retire_segment(segment)
        manifest = [file for _, file in self._compacted.values()]
        gone = expired(manifest, trims, self._dropped)
        if gone:
            await self._runner.run(lambda: self._metadata.apply_compaction((), gone, ()))
            self._retire_compacted(gone)

    def _is_dead(self, segment: Segment) -> bool:
        return all(
            partition in self._dropped
            or (logs := self._partitions.get(partition)) is None
            or end <= logs.log(kind).start
            for (partition, kind), end in segment.index.ends.items()
        )

    def _retire_segment(self, segment: Segment) -> None:
        def remove() -> None:
            self._remove(segment.name)
            self._remove(segment.name + INDEX_SUFFIX)

        self._sources.retire(segment.number, remove)

    def _retire_compacted(self, names: list[str]) -> None:
        for name in names:
            number, _ = self._compacted.pop(name)
            self._sources.retire(number, lambda name=name: self._remove(name))  # type: ignore[misc]

    def _remove(self, name: str) -> None:
        try:
            if self._files.exists(name):
                self._files.remove(name)
        except OSError:
            # It is garbage, and is looked for again at the next start.
            _log.exception("a file is of no more use but cannot be removed", file=name)
        self._space.release(name)
        self._work.set()

    # --- compaction ---------------------------------------------------------------------------------------------

    def _start_compaction(self) -> None:
        if self._compactor is None or self._closing or self._is_compacting():
            return
        ready = sum(segment.indexed for segment in self._closed)
        rested = asyncio.get_running_loop().time() >= self._compaction_not_before
        if rested and ready >= self._settings.compaction_segments_min:
            self._compaction = asyncio.create_task(self._compact())

    def _is_compacting(self) -> bool:
        return self._compaction is not None and not self._compaction.done()

    async def _compact(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self.compact()
        except (OSError, StorageError):
            _log.exception("a compaction failed; nothing is lost, and it is tried again later")
            self._rest(loop)
        except Exception as error:
            self._watch.crashed("compaction", error)
            self._rest(loop)
        else:
            # This task still counts as running: look again once it does not.
            loop.call_soon(self._work.set)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        self._compaction_not_before = loop.time() + COMPACTION_RETRY_SECONDS
        loop.call_later(COMPACTION_RETRY_SECONDS, self._work.set)

    async def compact(self) -> CompactionResult | None:
        """Rewrite all closed segments as one file a log, and put those in their place. None: nothing to do."""
        assert self._compactor is not None
        # From the oldest on without a gap: a compacted file holds its offsets in order.
        segments = list(itertools.takewhile(lambda segment: segment.indexed, self._closed))
        if not segments:
            return None
        plan = self._plan(segments)
        await self._runner.run(lambda: self._metadata.begin_compaction(plan.outputs))
        try:
            result = await self._compactor.compact(plan)
        except BaseException:
            self._abandon(plan)
            raise
        for skipped in result.skipped:
            _log.error("damaged data was left out by compaction", detail=str(skipped))
        # From here on nothing may come between: the new truth is durable, then it is the one that reads see.
        self._applying = asyncio.ensure_future(self._apply(segments, plan, result))
        await asyncio.shield(self._applying)
        return result

    async def _apply(self, segments: list[Segment], plan: Plan, result: CompactionResult) -> None:
        names = [segment.name for segment in segments]
        await self._runner.run(lambda: self._metadata.apply_compaction(result.added, plan.removed, names))
        try:
            self._swap(segments, plan, result)
            for segment in segments:
                self._closed.remove(segment)
                self._retire_segment(segment)
            self._retire_compacted([name for name in plan.removed if name in self._compacted])
        except Exception as error:
            # The new files are in force and memory does not know them: the next compaction would undo this one.
            self._stop("compaction", error)
            raise
        _log.info(
            "segments were compacted",
            segments=len(segments),
            files=len(result.added),
            bytes_in=result.bytes_in,
            bytes_out=result.bytes_out,
        )
        await self._runner.run(lambda: forget_removed(self._files, self._metadata))

    def _plan(self, segments: list[Segment]) -> Plan:
        numbers = {segment.number: segment.name for segment in segments}
        ends: dict[Log, int] = {}
        for segment in segments:
            for log, end in segment.index.ends.items():
                ends[log] = max(ends.get(log, 0), end)
        logs: dict[Log, list[Source]] = {}
        for partition, kind in ends:
            if (known := self._partitions.get(partition)) is not None:
                logs[partition, kind] = [
                    Source(numbers[row.file], row.position, row.length, *row[:2], *row[5:])
                    for row in known.log(kind).rows()
                    if row.file in numbers
                ]
        return make_plan(
            logs,
            ends=ends,
            segments=list(numbers.values()),
            manifest=[file for _, file in self._compacted.values()],
            trims=self._trims(),
            dropped=self._dropped,
            generation=self._generation(),
        )

    def _swap(self, segments: list[Segment], plan: Plan, result: CompactionResult) -> None:
        """Let the index point into the new files instead of the old ones, in one step of the loop."""
        old = {segment.number for segment in segments}
        old |= {self._compacted[name][0] for name in plan.removed if name in self._compacted}
        added: dict[Log, list[Row]] = {}
        for file in result.added:
            number = self._number()
            self._compacted[file.name] = (number, file)
            self._sources.add(number, file.name)
            self._space.hold(file.name, file.file_bytes)
            added.setdefault((file.partition, file.kind), []).extend(rows_of(file, number))
        touched = {log for segment in segments for log in segment.index.ends} | set(added)
        for partition, kind in touched:
            if (known := self._partitions.get(partition)) is not None:
                known.log(kind).replace(old, added.get((partition, kind), ()))

    def _abandon(self, plan: Plan) -> None:
        for name in plan.outputs:
            if self._files.exists(name):
                self._files.remove(name)

    def _trims(self) -> dict[PartitionKey, tuple[int, int]]:
        return {key: (logs.messages.start, logs.journal.start) for key, logs in self._partitions.items()}


def rows_of(file: CompactedFile, number: int) -> list[Row]:
    """Index rows for what a compacted file holds."""
    return [
        Row(base, count, number, position, length, time_us, checksum, flags)
        for base, count, position, length, time_us, checksum, flags in file.places
    ]
