"""Sealing anew what outdated keys have sealed, in the background, until nothing needs them; then they are given up.

What is to be done follows from the keys alone: as long as a domain has a key beside its newest one, that older key is
on its way out. So there is no progress to be stored: after a crash the files say what is left.

Everything stored is either a record of the write-ahead log, an entry of a compacted file or a small value. Compaction
opens and seals what it rewrites, so segments are compacted and compacted files rewritten; values are sealed anew in
their place. A key is given up only after all of that was found to be free of it twice: by the index in memory, and by
a look at the files and the metadata alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from sealane.engine.local.compacting import Compacting
from sealane.engine.local.compaction import forget_removed
from sealane.engine.local.compaction_plan import make_rewrite
from sealane.engine.local.files import Files
from sealane.engine.local.key_use import KeyIds, key_ids_of, key_ids_on_disk, sealed_positions
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.reading import Sources
from sealane.engine.local.runner import Runner
from sealane.engine.local.wal import Segment, Wal
from sealane.errors import Closed, CorruptData, StorageError
from sealane.log import get_log
from sealane.security.at_rest.sealing import Sealer, key_id_of
from sealane.security.records import resealed

_log = get_log("sealane.engine")

REWRITE_BYTES = 64 << 20
"""How much is rewritten at once, a larger file by itself aside: what a crash makes to be done again, and how often the
progress moves. Starting the helper process for less would take longer than the work."""


class _Found(NamedTuple):
    """What still refers to outdated keys."""

    active: Segment | None
    closed: list[Segment]
    files: list[CompactedFile]

    @property
    def bytes(self) -> int:
        segments = [*self.closed, *([self.active] if self.active is not None else [])]
        return sum(segment.end for segment in segments) + sum(file.file_bytes for file in self.files)


class Resealing:
    """One step at a time, each where no compaction runs beside it."""

    def __init__(
        self,
        files: Files,
        *,
        metadata: Metadata,
        sealer: Sealer,
        wal: Wal,
        sources: Sources,
        compacting: Compacting,
        runner: Runner,
        settled: Callable[[], Awaitable[None]],
        end_segment: Callable[[], Awaitable[None]],
    ) -> None:
        """`settled` returns once all that was sealed before is where it can be found; `end_segment` closes the active
        segment, if another one is ready.
        """
        self._files = files
        self._metadata = metadata
        self._sealer = sealer
        self._wal = wal
        self._sources = sources
        self._compacting = compacting
        self._runner = runner
        self._settled = settled
        self._end_segment = end_segment
        self._known: dict[str, KeyIds] = {}
        """By file, for those that never change again."""
        self._values_free_of: KeyIds = frozenset()
        self._moved = asyncio.Event()
        self._closed = False
        self.bytes_left = 0
        self.bytes_total = 0
        """Of what was found to be done since there has been something to do."""

    @property
    def due(self) -> bool:
        return bool(self._sealer.keyring.outdated())

    async def moved(self) -> None:
        """Wait until something more is done. `Closed` if nothing more will be before the next start."""
        await self._moved.wait()
        if self._closed:
            raise Closed("the engine is closed; what is left to be sealed anew is done after the next start")

    def close(self) -> None:
        self._closed = True
        self._tell()

    async def step(self) -> bool:
        """Do the next part. False: it cannot go on before a file is no longer read, or there is room again."""
        outdated = self._sealer.keyring.outdated()
        # In this order: what these keys have sealed is all in its place from here on, and they seal nothing more.
        await self._settled()
        if not self._values_free_of.issuperset(outdated):
            # Once is enough: a value that is put from here on is sealed by a newer key.
            await self._runner.run(lambda: self._reseal_values(outdated))
            self._values_free_of = frozenset(outdated)
        found = await self._look(frozenset(outdated))
        self._count(found.bytes)
        if found.active is not None:
            if self._wal.active is found.active:
                await self._end_segment()
            return self._wal.active is not found.active
        if found.closed:
            return await self._compacting.compact() is not None
        if found.files:
            await self._rewrite(found.files)
            return True
        return await self._give_up(outdated)

    # --- finding ------------------------------------------------------------------------------------------------------

    async def _look(self, ids: KeyIds) -> _Found:
        # Asked for first: should it be closed meanwhile, it is found in both places, and not in none.
        active = self._wal.active
        if active is not None:
            name, positions = active.name, active.index.sealed_positions()
            if not ids & await self._runner.run(lambda: key_ids_of(self._files, name, positions)):
                active = None
        closed = [each for each in (*self._compacting.closed, *self._wal.closed) if await self._uses(each, ids)]
        files = [
            file
            for file in self._compacting.files_in_force
            if file.sealed and file.partition not in self._compacting.dropped and await self._file_uses(file, ids)
        ]
        return _Found(active, closed, files)

    async def _uses(self, segment: Segment, ids: KeyIds) -> bool:
        if segment.name not in self._known:
            positions = segment.index.sealed_positions()
            self._known[segment.name] = await self._runner.run(lambda: key_ids_of(self._files, segment.name, positions))
        return bool(self._known[segment.name] & ids)

    async def _file_uses(self, file: CompactedFile, ids: KeyIds) -> bool:
        if file.name not in self._known:
            self._known[file.name] = await self._runner.run(
                lambda: key_ids_of(self._files, file.name, sealed_positions(file))
            )
        return bool(self._known[file.name] & ids)

    def _count(self, left: int) -> None:
        if left > self.bytes_left:
            self.bytes_total += left - self.bytes_left
        self.bytes_left = left
        self._tell()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    # --- sealing anew -------------------------------------------------------------------------------------------------

    async def _rewrite(self, files: list[CompactedFile]) -> None:
        chosen: list[CompactedFile] = []
        for file in files:
            if chosen and sum(each.file_bytes for each in chosen) + file.file_bytes > REWRITE_BYTES:
                break
            chosen.append(file)
        compacting = self._compacting
        plan = make_rewrite(chosen, compacting.trims(), generation=compacting.generation())
        await compacting.rewrite(plan, [])
        for file in chosen:
            self._known.pop(file.name, None)

    def _reseal_values(self, outdated: Mapping[int, str]) -> None:
        for key, value in self._metadata.values():
            key_id = key_id_of(value.data)
            domain = None if key_id is None else outdated.get(key_id)
            if domain is None:
                continue
            try:
                data = resealed(self._sealer, domain, key, value.data)
            except CorruptData:
                raise StorageError(
                    f"the value {key!r} in meta.db does not open by key {key_id} of domain {domain!r}, by "
                    "which it is sealed: it was changed or damaged; restore it from a backup. Until then the key stays"
                ) from None
            self._metadata.replace_value(key, data, version=value.version)

    # --- giving keys up -----------------------------------------------------------------------------------------------

    async def _give_up(self, outdated: Mapping[int, str]) -> bool:
        """Destroy the keys, if really nothing has need of them. A file that someone still reads needs its key."""
        await self._runner.run(lambda: forget_removed(self._files, self._metadata))
        if self._sources.retiring or self._metadata.garbage():
            return False
        for look in await self._runner.run(lambda: list(key_ids_on_disk(self._files, self._metadata))):
            needed = outdated.keys() & await self._runner.run(look)
            if needed:
                self._known.clear()
                raise StorageError(f"key {min(needed)} is still referred to, against what the index says; it is kept")
        if any(key_id_of(value.data) in outdated for _, value in await self._runner.run(self._metadata.values)):
            self._values_free_of = frozenset()
            raise StorageError("a value in meta.db is still sealed by an older key; it is kept")
        await self._runner.run(lambda: self._sealer.keyring.retire(outdated))
        _log.info(
            "everything is sealed by the newest keys, and the older ones are destroyed",
            domains=sorted(set(outdated.values())),
            keys=len(outdated),
        )
        self._known.clear()
        self.bytes_left = self.bytes_total = 0
        self._tell()
        return True
