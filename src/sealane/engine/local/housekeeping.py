"""What the engine does beside commits and reads: prepare segments, save indexes, give space back, compact."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from sealane.engine.local.compacting import Compacting
from sealane.engine.local.compaction import CompactionResult
from sealane.engine.local.files import Files
from sealane.engine.local.reading import Sources
from sealane.engine.local.resealing import Resealing
from sealane.engine.local.runner import Runner
from sealane.engine.local.segment import INDEX_SUFFIX
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.space import Space
from sealane.engine.local.wal import Segment, Wal
from sealane.engine.local.write_pace import WritePace
from sealane.engine.watch import EngineWatch
from sealane.errors import StorageError
from sealane.log import get_log

_log = get_log("sealane.engine")

COMPACTION_RETRY_SECONDS = 30.0
"""How long a compaction that failed, for lack of room perhaps, is left alone."""


class Housekeeping:
    """Two tasks: one for small chores, one for compaction and sealing anew, which take turns. Whatever they meet, the
    log goes on, and they try again.
    """

    def __init__(
        self,
        files: Files,
        settings: StorageSettings,
        *,
        space: Space,
        wal: Wal,
        sources: Sources,
        compacting: Compacting,
        resealing: Resealing,
        runner: Runner,
        watch: EngineWatch,
    ) -> None:
        self._files = files
        self._settings = settings
        self._space = space
        self._wal = wal
        self._sources = sources
        self._closed = compacting.closed
        self._compacting = compacting
        self._resealing = resealing
        self._runner = runner
        self._watch = watch
        self._work = asyncio.Event()
        self._closing = False
        self._preparing = False
        self._compaction: asyncio.Task[None] | None = None
        self._compaction_not_before = 0.0
        self._resealing_not_before = 0.0
        self._compacted_last = False
        self._pace = WritePace(settings.compaction_bytes_per_second_max)
        self._chores: asyncio.Task[None] | None = None
        compacting.removed = self._work.set

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
        self._resealing.close()
        self._work.set()
        if self._compaction is not None:
            self._compaction.cancel()
            await asyncio.wait([self._compaction])
        if self._chores is not None:
            await self._chores
        await self._compacting.close()

    # --- chores -------------------------------------------------------------------------------------------------

    async def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing:
            self._work.clear()
            try:
                await self._prepare_spare()
                await self._save_indexes()
                await self._let_go_of_older()
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

    async def _let_go_of_older(self) -> None:
        """Leave the newest segments in the page cache, and no others."""
        newer_bytes = 0
        older: list[Segment] = []
        for segment in reversed(self._closed):
            newer_bytes += segment.end
            if segment.cached and newer_bytes > self._settings.cached_bytes_max:
                older.append(segment)
        for segment in reversed(older):
            if self._closing:
                return
            segment.cached = False
            with suppress(FileNotFoundError):  # Compaction has put something else in its place meanwhile.
                await self._runner.run(partial(self._files.let_go, segment.name))

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
        # A compaction reads these files; it leaves out what is no longer needed, and wakes us when it is done.
        if not self._is_compacting():
            await self._compacting.give_space_back()

    # --- compaction ---------------------------------------------------------------------------------------------

    def _start_compaction(self) -> None:
        if not self._compacting.possible or self._closing or self._is_compacting():
            return
        now = asyncio.get_running_loop().time()
        ready = sum(segment.indexed for segment in self._closed)
        compact = (
            self._settings.compaction
            and ready >= self._settings.compaction_segments_min
            and now >= self._compaction_not_before
            and (ready >= self._settings.compaction_segments_max or self._has_time_to_compact(now))
        )
        reseal = self._resealing.due and now >= self._resealing_not_before
        if reseal and not (compact and not self._compacted_last):
            self._compacted_last = False
            self._compaction = asyncio.create_task(self._reseal())
        elif compact:
            self._compacted_last = True
            self._compaction = asyncio.create_task(self._compact())

    def _has_time_to_compact(self, now: float) -> bool:
        """Whether no more is written at the moment than compaction may rewrite; if not, it is looked at again."""
        wait_seconds = self._pace.seconds_to_wait(now, self._wal.written_bytes)
        if wait_seconds:
            self._compaction_not_before = self._rest(wait_seconds)
        return not wait_seconds

    def _is_compacting(self) -> bool:
        return self._compaction is not None and not self._compaction.done()

    async def compact(self) -> CompactionResult | None:
        """Rewrite all closed segments as one file a log, and put those in their place. None: nothing to do."""
        return await self._compacting.compact()

    async def _compact(self) -> None:
        try:
            await self.compact()
        except (OSError, StorageError):
            _log.exception("a compaction failed; nothing is lost, and it is tried again later")
            self._compaction_not_before = self._rest(COMPACTION_RETRY_SECONDS)
        except Exception as error:
            self._watch.crashed("compaction", error)
            self._compaction_not_before = self._rest(COMPACTION_RETRY_SECONDS)
        else:
            # This task still counts as running: look again once it does not.
            asyncio.get_running_loop().call_soon(self._work.set)

    async def _reseal(self) -> None:
        """One step of sealing anew; between two of them others have their turn."""
        try:
            went_on = await self._resealing.step()
        except (OSError, StorageError):
            _log.exception("sealing anew failed; nothing is lost, and it is tried again later")
            self._resealing_not_before = self._rest(COMPACTION_RETRY_SECONDS)
        except Exception as error:
            self._watch.crashed("resealing", error)
            self._resealing_not_before = self._rest(COMPACTION_RETRY_SECONDS)
        else:
            if went_on:
                asyncio.get_running_loop().call_soon(self._work.set)
            else:
                self._resealing_not_before = self._rest(self._settings.space_retry_seconds)

    def _rest(self, seconds: float) -> float:
        """The time before which it is not tried again."""
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, self._work.set)
        return loop.time() + seconds
