"""Putting compactions in force: what is to be rewritten, and how its result takes the place of what was there."""

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
from sealane.engine.local.space import Space
from sealane.engine.local.trims import Trim
from sealane.engine.local.wal import Segment
from sealane.log import get_log

_log = get_log("sealane.engine")


class Compacting:
    """The closed segments and compacted files of an engine, and all that replaces or removes one of them.

    One compaction at a time: whoever calls `compact` or `rewrite` sees to that.
    """

    def __init__(
        self,
        files: Files,
        *,
        space: Space,
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
        stop: Callable[[str, Exception], None],
    ) -> None:
        self._files = files
        self._space = space
        self._sources = sources
        self._metadata = metadata
        self._partitions = partitions
        self.dropped = dropped
        self.closed = closed
        """Segments that are full, oldest first."""
        self._compacted = compacted
        self._runner = runner
        self._compactor = compactor
        self._number = number
        self.generation = generation
        self._stop = stop
        self._applying: asyncio.Task[None] | None = None
        self.removed: Callable[[], None] = lambda: None
        """Told when a file is gone."""

    @property
    def possible(self) -> bool:
        return self._compactor is not None

    @property
    def files_in_force(self) -> list[CompactedFile]:
        return [file for _, file in self._compacted.values()]

    async def close(self) -> None:
        """Whoever calls has ended the compaction that was under way; what it had begun to put in force is finished."""
        if self._applying is not None:
            await asyncio.wait([self._applying])
        if self._compactor is not None:
            await self._compactor.close()

    # --- giving space back ----------------------------------------------------------------------------------------

    async def give_space_back(self) -> None:
        """Remove what nobody needs, whole files at a time. It needs no room to work in, so it helps on a full disk."""
        for segment in [segment for segment in self.closed if self._is_dead(segment)]:
            self.closed.remove(segment)
            self._retire_segment(segment)
        gone = expired(self.files_in_force, self.trims(), self.dropped)
        if gone:
            await self._runner.run(lambda: self._metadata.apply_compaction((), gone, ()))
            self._retire_compacted(gone)

    def _is_dead(self, segment: Segment) -> bool:
        return all(
            partition in self.dropped
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
        self.removed()

    # --- compaction -----------------------------------------------------------------------------------------------

    async def compact(self) -> CompactionResult | None:
        """Rewrite all closed segments as one file a log, and put those in their place. None: nothing to do."""
        # From the oldest on without a gap: a compacted file holds its offsets in order.
        segments = list(itertools.takewhile(lambda segment: segment.indexed, self.closed))
        if not segments:
            return None
        return await self.rewrite(self._plan(segments), segments)

    async def rewrite(self, plan: Plan, segments: list[Segment]) -> CompactionResult:
        """Carry a plan out that replaces these segments, and put its result in force."""
        assert self._compactor is not None
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
                self.closed.remove(segment)
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
            manifest=self.files_in_force,
            trims=self.trims(),
            dropped=self.dropped,
            generation=self.generation(),
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

    def trims(self) -> dict[PartitionKey, Trim]:
        return {key: Trim(logs.messages.start, logs.journal.start) for key, logs in self._partitions.items()}


def rows_of(file: CompactedFile, number: int) -> list[Row]:
    """Index rows for what a compacted file holds."""
    return [
        Row(base, count, number, position, length, time_us, checksum, flags)
        for base, count, position, length, time_us, checksum, flags in file.places
    ]
