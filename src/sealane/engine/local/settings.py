"""Every knob of the local engine, with its default and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealane.errors import InvalidArgument

MiB = 1 << 20

SEGMENT_BYTES_MIN = 4096
"""Room for the header and a few small records; simulations use small segments to see many of them."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Settings of the local engine, `storage.*` in the configuration."""

    segment_bytes: int = 64 * MiB
    """How long a segment of the write-ahead log grows. Larger ones rotate less often, smaller ones are compacted, and
    free their space, sooner. 64 MiB is a third of a second at full speed, and is scanned in well under a second."""

    segment_bytes_first: int = MiB
    """The first segment of a new directory; each next one is four times as long, up to `segment_bytes`, so that a small
    broker stays small on disk."""

    group_bytes_max: int = 5 * MiB
    """How much one group commit takes at most, a larger batch by itself aside. Measured: with 16 MiB four producers and
    four consumers together got nine tenths of the throughput, with 3 MiB messages of 1 KiB two thirds."""

    commit: Literal["auto", "inline", "thread"] = "auto"
    """Where a group is written: on the event loop (fastest when one small commit waits), on a thread (the loop stays
    free and the next group gathers), or whichever suits what was seen lately."""

    inline_bytes_max: int = 64 * 1024
    """The largest group that `auto` writes on the loop: copying more into the page cache is felt by others."""

    inline_seconds_max: float = 0.002
    """When syncs have lately taken longer than this, `auto` keeps them off the loop."""

    tail_bytes_max: int = 64 * MiB
    """Recent batches kept in memory, over all partitions, for consumers that keep up. A second or so at full speed."""

    cached_bytes_max: int = 256 * MiB
    """How much of the log the system keeps in its page cache behind the active segment, where small groups, readers and
    compaction have brought it there; older segments are read from disk. A log that takes ever more memory takes it from
    everything else on the machine, and new pages are dear on a virtual one: copying into a page that was used before
    takes 0.3 ms a MiB, into one that the host has yet to give 3 ms."""

    disk_bytes_max: int | None = None
    """Refuse publishes when the data would take more than this. None: only the disk itself is the limit."""

    disk_free_bytes_min: int = 64 * MiB
    """Refuse publishes while the disk has less free than this beside a new segment: a disk filled to the last byte
    harms metadata, compaction, and everything else on it."""

    space_retry_seconds: float = 1.0
    """How often a full engine looks whether there is room again."""

    open_files_max: int = 256
    """Closed files kept open for reading. Well below the usual limit of 1,024 descriptors a process."""

    compaction: bool = True
    """Rewrite closed segments into one file a partition in the background."""

    compaction_segments_min: int = 4
    """How many closed segments gather before they are compacted: more give larger files, fewer free space sooner."""

    compaction_segments_max: int = 32
    """How many may wait while the node is busy, that is while more is written than `compaction_bytes_per_second_max`:
    a burst has processors and disk for itself, and is compacted after it. With more, compaction begins all the same."""

    compaction_bytes_per_second_max: int = 64 * MiB
    """What compaction reads and writes in a second: any disk spares it. A node that writes faster for long grows its
    log, and shrinks it once it has time."""

    backup_bytes_per_second_max: int = 128 * MiB
    """What an online backup copies in a second: half of what a modest disk writes, so that commits beside it keep their
    pace. A hundred gigabytes take a quarter of an hour."""

    def __post_init__(self) -> None:
        if self.segment_bytes < SEGMENT_BYTES_MIN:
            raise InvalidArgument("storage.segment_bytes", f"is {self.segment_bytes:,}, at least {SEGMENT_BYTES_MIN:,}")
        if self.segment_bytes_first < SEGMENT_BYTES_MIN:
            raise InvalidArgument(
                "storage.segment_bytes_first", f"is {self.segment_bytes_first:,}, at least {SEGMENT_BYTES_MIN:,}"
            )
        if self.disk_bytes_max is not None and self.disk_bytes_max < 4 * self.segment_bytes:
            # The active segment, the next one and what waits for compaction must fit with room to work in.
            raise InvalidArgument(
                "storage.disk_bytes_max",
                f"is {self.disk_bytes_max:,}, at least four segments of {self.segment_bytes:,} bytes "
                "(storage.segment_bytes) are needed",
            )
        if self.commit not in ("auto", "inline", "thread"):
            raise InvalidArgument("storage.commit", f"is {self.commit!r}, must be 'auto', 'inline' or 'thread'")
        for name in (
            "group_bytes_max",
            "tail_bytes_max",
            "open_files_max",
            "compaction_segments_min",
            "compaction_segments_max",
            "compaction_bytes_per_second_max",
            "backup_bytes_per_second_max",
        ):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"storage.{name}", "must be at least 1")
