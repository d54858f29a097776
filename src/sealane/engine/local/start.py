"""Opening a data directory: keys first, then recovery, then the index of all that is there."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from sealane.engine.contract import PartitionKey
from sealane.engine.local.compacting import rows_of
from sealane.engine.local.compaction import remove_garbage
from sealane.engine.local.files import Files
from sealane.engine.local.manifest import CompactedFile
from sealane.engine.local.metadata import METADATA_NAME, Metadata
from sealane.engine.local.partition import PartitionLogs
from sealane.engine.local.reading import Sources
from sealane.engine.local.recovery import recover
from sealane.engine.local.segment import INDEX_SUFFIX, SPARE_NAME, WAL_DIRECTORY
from sealane.engine.local.settings import StorageSettings
from sealane.engine.local.space import Space
from sealane.engine.local.wal import Wal
from sealane.errors import CorruptData, StorageFailed, StorageFull
from sealane.log import get_log
from sealane.security.at_rest.keys import Keyring
from sealane.security.at_rest.sealing import Sealer

_log = get_log("sealane.engine")

RESTORE_DRAFT = "restore.unfinished"
"""What a restore copies to before it puts things in their places. While it is there the directory is not complete."""


class Start:
    """Everything that opening reads and makes, on a thread: what the engine is then built from."""

    def __init__(
        self, files: Files, settings: StorageSettings, clock: Callable[[], int], entropy: Callable[[int], bytes]
    ) -> None:
        self.files = files
        self.settings = settings
        self.clock = clock
        self.entropy = entropy
        self.partitions: dict[PartitionKey, PartitionLogs] = {}
        self.compacted: dict[str, tuple[int, CompactedFile]] = {}
        self.number: Callable[[], int] = itertools.count(1).__next__

    def run(self) -> None:
        self._check_complete()
        self.metadata = Metadata(self.files.database(METADATA_NAME), self.clock)
        try:
            self.sealer = Sealer(Keyring.open(self.files, self.metadata, self.entropy), self.entropy)
            self._load()
        except BaseException:
            self.metadata.close()
            raise

    def _load(self) -> None:
        self.files.make_directory(WAL_DIRECTORY)
        self.space = Space(self.settings, self.files.free_bytes)
        self.sources = Sources(self.files, self.settings.open_files_max)
        garbage = set(self.metadata.garbage())
        self.recovered = recover(self.files, self.clock, self.number, skip=garbage)
        remove_garbage(self.files, self.metadata)
        self._remove_leftovers()
        self.dropped = self.metadata.dropped()
        self._fill_index()
        self.boot = self.metadata.boot()
        self.wal = Wal(
            self.files,
            self.settings,
            self.space,
            clock=self.clock,
            entropy=self.entropy,
            number=self.number,
            next_sequence=self.recovered.next_sequence,
            last_time_us=self.recovered.last_time_us,
            active=self.recovered.active,
        )
        try:
            self._mark()
        except BaseException:
            self.wal.close()
            raise

    def _check_complete(self) -> None:
        """Metadata that is gone while the log is there must not be made anew: it has the keys and the trims."""
        if self.files.exists(RESTORE_DRAFT):
            raise CorruptData(
                f"{self.files.location} holds a restore that was cut short ({RESTORE_DRAFT}); empty the directory and "
                "restore it again"
            )
        if not self.files.exists(METADATA_NAME) and self.files.list(WAL_DIRECTORY):
            raise CorruptData(
                f"{self.files.location}/{METADATA_NAME} is missing, and there is a log here that needs it; "
                "restore it from your backup"
            )

    def _remove_leftovers(self) -> None:
        """What a crash in the middle of a chore has left: drafts, and indexes of segments that are gone."""
        names = {f"{WAL_DIRECTORY}/{name}" for name in self.files.list(WAL_DIRECTORY)}
        for name in names:
            orphan = name.endswith(INDEX_SUFFIX) and name.removesuffix(INDEX_SUFFIX) not in names
            if orphan or name.endswith(".draft"):
                self.files.remove(name)
        # A removal may come undone until it is synced; what is forgotten below counts on it.
        self.files.sync_directory(WAL_DIRECTORY)

    def _fill_index(self) -> None:
        mentioned: set[PartitionKey] = set()
        for file in self.metadata.manifest():
            number = self.number()
            self.compacted[file.name] = (number, file)
            self.sources.add(number, file.name)
            self.space.hold(file.name, file.file_bytes)
            mentioned.add(file.partition)
            log = self._logs(file.partition).log(file.kind)
            for row in rows_of(file, number):
                log.append(row)
            log.end = max(log.end, file.stop)
        active = self.recovered.active
        for segment in [*self.recovered.closed, *([active] if active is not None else [])]:
            self.sources.add(segment.number, segment.name)
            self.space.hold(segment.name, segment.capacity)
            mentioned.update(segment.index.partitions)
            for partition, kind, columns in segment.index.logs(segment.number):
                log = self._logs(partition).log(kind)
                # Never twice: should a segment come back that compaction had replaced, its rows are known already.
                fresh = columns[0] >= log.end
                log.extend(columns if fresh.all() else tuple(column[fresh] for column in columns))
            for (partition, kind), end in segment.index.ends.items():
                log = self._logs(partition).log(kind)
                log.end = max(log.end, end)
        for partition in self.dropped:
            self.partitions.pop(partition, None)
        self.metadata.forget_drops(self.dropped - mentioned)
        for partition, trim in self.metadata.trims().items():
            self._logs(partition).trim(trim)
        for logs in self.partitions.values():
            logs.forget_reserved()

    def _logs(self, partition: PartitionKey) -> PartitionLogs:
        logs = self.partitions.get(partition)
        if logs is None:
            logs = self.partitions[partition] = PartitionLogs(partition)
        return logs

    def _mark(self) -> None:
        """Begin with a mark: with something sound after it, damage to what was there before is known for what it is."""
        if self.wal.active is None or self.files.exists(SPARE_NAME):
            try:
                self.wal.fill_spare()
            except OSError:
                _log.warning("the next segment cannot be prepared yet; it is tried again", exc_info=True)
        try:
            self.wal.write([])
        except StorageFull:
            _log.warning("the disk is full: publishes are refused until there is room")
        except OSError as error:
            if not self.space.is_full(error):
                raise StorageFailed(f"{self.files.location!r} cannot be written: {error}") from error
