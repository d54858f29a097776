"""One pipeline at a time has a lake: two would take in the same micro-batches and wait for each other's files."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealane.errors import SealaneError
from sealane.pipeline.lake.failing import LakeFull, is_no_space
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import Lake

_LOCK = "_running"
"""Its name begins as those do that readers of tables leave out."""
_LOOK_SECONDS = 0.1


class LakeInUse(SealaneError):
    """Another process runs the pipeline of this lake."""

    def __init__(self, lake: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(
            f"the lake {lake} is in use by {holder}; wait for it, or end it by: sealane pipeline stop --lake {lake}"
        )
        self.lake = lake
        self.pid = pid


@contextmanager
def held(lake: Path) -> Iterator[None]:
    """Have the lake for the block, with every step whole that has come in. Raises `LakeInUse`; what the block raises
    for want of space becomes `LakeFull`.
    """
    try:
        with _locked(lake):
            finish_steps(Lake(lake))
            yield
    except Exception as error:
        if is_no_space(error):
            raise LakeFull(lake) from error
        raise


@contextmanager
def _locked(lake: Path) -> Iterator[None]:
    lake.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lake / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeInUse(lake, _pid(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def finish_steps(lake: Lake) -> None:
    """Do what a crash has left undone, in every table. A compaction that was stopped halfway would have its rows read
    twice by the next step.
    """
    for table in lake.tables():
        TableLog(lake, table).finish()


def holder(lake: Path) -> int | None:
    """The process that has the lake now."""
    try:
        descriptor = os.open(lake / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def stop_holder(lake: Path, wait_seconds: float) -> int | None:
    """Have whoever runs the pipeline end it after the step that is under way, and wait for that.

    Returns its pid, or None if nobody runs it. Raises `LakeInUse` if it still does after so long.
    """
    pid = holder(lake)
    if pid is None:
        return None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + wait_seconds
    while holder(lake) == pid:
        if time.monotonic() > deadline:
            raise LakeInUse(lake, pid)
        time.sleep(_LOOK_SECONDS)
    return pid


def _pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
