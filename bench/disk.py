"""Disk: what messages take once they are compacted, and how fast the disk itself writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import sealane
from bench.clients.order import TOPIC
from sealane.testing.node_process import NodeProcess

BYTES_PER_MB = 1_000_000
MESSAGE_BYTES = 100
BATCH = 5_000
FILLER_TOPIC = "filler"
FILLER_BYTES = 1 << 20
"""One message of the filler: the largest that a topic takes by default, so that few of them end a segment."""
WAIT_SECONDS = 300.0
WRITE_BYTES = 4 << 20
WRITES = 64


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What a data directory holds, by apparent size."""

    compacted_mb: float
    """The topic's compacted files: messages, journal, and the index that each file ends with."""
    log_mb: float
    """The write-ahead log: the segment in use and the one prepared to follow it, which are there at full length however
    much is stored."""
    rest_mb: float
    """Metadata and keys. The filler's own files, which only ended the last segment, are counted nowhere."""

    @property
    def all_mb(self) -> float:
        return self.compacted_mb + self.log_mb + self.rest_mb


def compacted(directory: Path, *, messages: int) -> float:
    """MB that so many messages of 100 random bytes take once every segment they were written to is compacted."""
    return compacted_in_parts(directory, messages=messages).compacted_mb


def compacted_in_parts(directory: Path, *, messages: int) -> DiskUse:
    """The same, and what else is in the directory.

    All settings but one are the defaults: a segment is compacted as soon as it is closed, where a node waits for four.
    """
    data = directory / "data"
    with NodeProcess(data, {"storage.compaction_segments_min": 1}) as node:
        with sealane.connect_sync(node.url) as lane:
            for _ in range(messages // BATCH):
                # Each payload anew: repeated ones would be compressed away.
                everything = os.urandom(BATCH * MESSAGE_BYTES)
                payloads = [everything[at : at + MESSAGE_BYTES] for at in range(0, len(everything), MESSAGE_BYTES)]
                lane.publish_many(TOPIC, payloads)
            written_to = {path.name for path in (data / "wal").glob("*.wal")}
            _end_the_segment(lane, data, written_to)
        _until(lambda: not any((data / "wal" / name).exists() for name in written_to), "segments are compacted")
        kept = data / "compacted"
        return DiskUse(
            compacted_mb=_megabytes(kept.rglob(f"{TOPIC}#*/*")),
            log_mb=_megabytes((data / "wal").iterdir()),
            rest_mb=_megabytes(data.iterdir()),
        )


def sequential(directory: Path) -> float:
    """MB/s of writes of 4 MiB into a zero-filled file, each followed by an fdatasync: what the disk itself can do."""
    path = directory / "sequential-probe"
    data = os.urandom(WRITE_BYTES)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # As the log is: where blocks are already there, a sync writes data and nothing else.
        zeros = bytes(WRITE_BYTES)
        for index in range(WRITES):
            os.pwrite(descriptor, zeros, index * WRITE_BYTES)
        os.fsync(descriptor)
        begun = time.perf_counter()
        for index in range(WRITES):
            os.pwrite(descriptor, data, index * WRITE_BYTES)
            os.fdatasync(descriptor)
        taken = time.perf_counter() - begun
    finally:
        os.close(descriptor)
        path.unlink()
    return WRITES * WRITE_BYTES / BYTES_PER_MB / taken


def _end_the_segment(lane: sealane.SyncLane, data: Path, written_to: set[str]) -> None:
    """Publish to another topic until the log goes on in a segment that has nothing of ours."""
    filler = os.urandom(FILLER_BYTES - 1_024)
    while {path.name for path in (data / "wal").glob("*.wal")} <= written_to:
        lane.publish(FILLER_TOPIC, filler)


def _megabytes(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / BYTES_PER_MB


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come to this within {WAIT_SECONDS:g} s: {what}")
        time.sleep(0.05)
