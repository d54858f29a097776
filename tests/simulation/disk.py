"""A simulated disk behind the local engine's `Files` seam: it forgets, tears, fails, fills up and rots on request.

`SimDisk` is the machine's disk and outlives processes; `SimFiles` is what one life of the process sees of it, and
refuses everything once that life is over.

What survives a power loss: everything synced; renames, secrets, new directories and zero-filled files, as the real
`DiskFiles` has it; of the rest whatever the seed keeps. A process that merely dies loses nothing, but nothing became
durable by that either.
"""

from __future__ import annotations

import builtins
import errno
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulation.database import SimConnection, SimDatabase
from tests.simulation.directory import Directory
from tests.simulation.ends import Crashed
from tests.simulation.sectors import Sectors

DiskFaultKind = Literal["crash_before", "crash_after", "torn_write", "sync_error", "write_error"]

_SUITS: dict[DiskFaultKind, frozenset[str] | None] = {
    "crash_before": None,
    "crash_after": None,
    "torn_write": frozenset({"write"}),
    "sync_error": frozenset({"sync"}),
    "write_error": frozenset({"write", "commit"}),
}
"""The operations that each fault can happen to; None is any."""


@dataclass(frozen=True, slots=True)
class DiskFault:
    """Happens once, to the first suitable operation whose number is `operation` or more."""

    kind: DiskFaultKind
    operation: int


@dataclass(frozen=True, slots=True)
class Flip:
    """A bit that rotted: the data at `position` of the file was sound when it was synced, and is not any more."""

    name: str
    position: int
    bit: int


class SimDisk:
    """The disk of one simulated machine.

    `operations` counts everything that changes it, over all lives; `capacity_bytes` may change at any time;
    `lying_sync` makes every sync return at once without doing anything (a planted bug, or a bad controller);
    `latency` says how many virtual seconds an operation takes; `on_delay` is told, `on_crash` is called at a crash.
    """

    def __init__(self, rng: random.Random, *, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = capacity_bytes
        self.operations = 0
        self.counts: Counter[str] = Counter()
        self.flips: list[Flip] = []
        self.happened: list[DiskFault] = []
        self.lying_sync = False
        self.latency: Callable[[str, int], float] | None = None
        self.on_delay: Callable[[float], None] = lambda seconds: None
        self.on_crash: Callable[[], None] = lambda: None
        self.trace: Callable[[str], None] | None = None
        self.directory = Directory()
        self.secrets: dict[str, bytes] = {}
        self._databases: dict[str, SimDatabase] = {}
        self._rng = rng
        self._armed: list[DiskFault] = []
        self._life: SimFiles | None = None

    # --- lives ------------------------------------------------------------------------------------------------------

    def mount(self) -> SimFiles:
        """What a new process sees. There is one at a time; the one before must have crashed or been closed."""
        if self._life is not None:
            self._life.alive = False
        self._life = SimFiles(self)
        return self._life

    def kill(self) -> None:
        """The process died, the machine did not: its writes are still in the page cache, and still not on the disk."""
        if self._life is not None:
            self._life.alive = False
            self._life = None
        for database in self._databases.values():
            database.crash()

    def lose_power(self) -> None:
        """The machine died: what was not synced is gone, or partly gone."""
        self.kill()
        self.directory.lose_power(self._rng)

    def close(self) -> None:
        """Forget everything, at the end of a run."""
        self.kill()
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    # --- faults -----------------------------------------------------------------------------------------------------

    def arm(self, *faults: DiskFault) -> None:
        self._armed = sorted([*self._armed, *faults], key=lambda fault: fault.operation)

    def disarm(self) -> None:
        self._armed.clear()

    def crash(self) -> None:
        """End the life that runs now, at once; the caller decides by `kill` or `lose_power` what that means."""
        if self._life is not None:
            self._life.alive = False
        self.on_crash()
        raise Crashed

    def flip_bit(self, name: str | None = None, *, anywhere: bool = False) -> Flip | None:
        """Flip one bit of synced data at rest, in that file or any, and record it in `flips`. None: nothing to flip.

        In the newest file of a directory only what lies before its last synced write is touched, unless `anywhere`:
        no log can tell a damaged last record from a torn one, while damage before a sound record is always damage.
        """
        names = [name] if name is not None else sorted(self.directory.names)
        self._rng.shuffle(names)
        for candidate in names:
            sectors = self.directory.names[candidate]
            newest = candidate == max(self.directory.siblings(candidate))
            below = sectors.synced_last if newest and not anywhere else len(sectors)
            found = sectors.flip_bit(self._rng, below=below)
            if found is not None:
                flip = Flip(candidate, *found)
                self.flips.append(flip)
                return flip
        return None

    # --- space ------------------------------------------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        return sum(map(len, self.directory.names.values()))

    def free_bytes(self) -> int:
        # Without a capacity there is room enough for anyone, and a figure that no setting mistakes for a full disk.
        return (1 << 40) if self.capacity_bytes is None else max(0, self.capacity_bytes - self.used_bytes)

    # --- what SimFiles, SimFile and the databases call --------------------------------------------------------------

    def enter(self, kind: str, name: str, size: int = 0) -> DiskFault | None:
        """One operation begins: count it, let it take its time, and return the fault that happens to it, if any."""
        self.operations += 1
        self.counts[kind] += 1
        if self.latency is not None:
            self.on_delay(self.latency(kind, size))
        if self.trace is not None:
            self.trace(f"disk {self.operations}: {kind} {name} {size or ''}")
        for index, fault in enumerate(self._armed):
            if fault.operation > self.operations:
                break
            suits = _SUITS[fault.kind]
            if suits is None or kind in suits:
                del self._armed[index]
                self.happened.append(fault)
                if fault.kind == "crash_before":
                    self.crash()
                return fault
        return None

    def leave(self, fault: DiskFault | None) -> None:
        if fault is not None and fault.kind == "crash_after":
            self.crash()

    def write(self, name: str, sectors: Sectors, position: int, data: bytes) -> None:
        fault = self.enter("write", name, len(data))
        if fault is not None and fault.kind in ("torn_write", "write_error"):
            data_cut = data[: self._rng.randrange(len(data) + 1)]
            sectors.write(position, data_cut)
            if fault.kind == "torn_write":
                sectors.sync()
                self.crash()
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)
        room = self.free_bytes() + max(0, len(sectors) - position)
        if self.capacity_bytes is not None and len(data) > room:
            # A real disk takes what fits and says so, and the next attempt to write the rest fails.
            sectors.write(position, data[:room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        sectors.write(position, data)
        self.leave(fault)

    def zero_fill(self, name: str, sectors: Sectors, length: int, *, written: bool) -> None:
        growth = length - len(sectors)
        if growth <= 0:
            return
        fault = self.enter("zero_fill", name, growth)
        if growth > self.free_bytes():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        sectors.truncate(length)
        if written:
            sectors.sync()
        self.leave(fault)

    def sync(self, name: str, sectors: Sectors) -> None:
        fault = self.enter("sync", name)
        if fault is not None and fault.kind == "sync_error":
            sectors.fail_sync(self._rng)
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)
        if not self.lying_sync:
            sectors.sync()
        self.leave(fault)

    def database(self, life: SimFiles, name: str) -> SimConnection:
        database = self._databases.get(name)
        if database is None:
            database = self._databases[name] = SimDatabase()
        armed: list[DiskFault] = []

        def gate(what: Literal["statement", "commit", "committed"]) -> None:
            life.check()
            if what == "commit":
                fault = self.enter("commit", name)
                if fault is not None and fault.kind == "write_error":
                    raise sqlite3.OperationalError("disk I/O error")
                if fault is not None:
                    armed.append(fault)
            elif what == "committed" and armed:
                self.leave(armed.pop())

        return database.connect(gate)

    def has_database(self, name: str) -> bool:
        return name in self._databases


class SimFiles:
    """One life's view of the disk: implements `sealane.engine.local.files.Files`."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self.alive = True

    def check(self) -> None:
        if not self.alive:
            raise Crashed("a dead life touches no disk")

    @property
    def location(self) -> str:
        return "simulated disk"

    def acquire(self) -> None:
        self.check()

    def release(self) -> None:
        """There is never a second process; a dead one may still call this from its `finally`."""

    def open(self, name: str, *, create: bool = False) -> SimFile:
        self.check()
        directory = self._disk.directory
        sectors = directory.names.get(name)
        if sectors is None:
            if not create or not directory.has_directory(_parent(name)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            fault = self._disk.enter("create", name)
            sectors = directory.create(name)
            self._disk.leave(fault)
        return SimFile(self._disk, self, name, sectors)

    def exists(self, name: str) -> bool:
        self.check()
        disk = self._disk
        known = name in disk.directory.names or name in disk.secrets or disk.has_database(name)
        return known or disk.directory.has_directory(name)

    def list(self, directory: str) -> builtins.list[str]:
        self.check()
        return self._disk.directory.list(directory)

    def make_directory(self, name: str) -> None:
        self.check()
        if not self._disk.directory.has_directory(name):
            fault = self._disk.enter("make_directory", name)
            self._disk.directory.make(name)
            self._disk.leave(fault)

    def rename(self, old: str, new: str) -> None:
        self.check()
        self._must_exist(old)
        fault = self._disk.enter("rename", new)
        self._disk.directory.rename(old, new)
        self._disk.leave(fault)

    def remove(self, name: str) -> None:
        self.check()
        self._must_exist(name)
        fault = self._disk.enter("remove", name)
        self._disk.directory.remove(name)
        self._disk.leave(fault)

    def sync_directory(self, name: str) -> None:
        self.check()
        fault = self._disk.enter("sync_directory", name)
        self._disk.directory.sync(name)
        self._disk.leave(fault)

    def let_go(self, name: str) -> None:
        self.check()
        self._must_exist(name)

    def free_bytes(self) -> int:
        self.check()
        return self._disk.free_bytes()

    def database(self, name: str) -> sqlite3.Connection:
        self.check()
        return self._disk.database(self, name)

    def read_secret(self, name: str) -> bytes | None:
        self.check()
        return self._disk.secrets.get(name)

    def write_secret(self, name: str, data: bytes) -> None:
        self.check()
        if name in self._disk.secrets:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        fault = self._disk.enter("write_secret", name)
        self._disk.secrets[name] = bytes(data)
        self._disk.leave(fault)

    def rename_secret(self, old: str, new: str) -> None:
        self.check()
        fault = self._disk.enter("rename", new)
        self._disk.secrets[new] = self._disk.secrets.pop(old)
        self._disk.leave(fault)

    def remove_secret(self, name: str) -> None:
        self.check()
        fault = self._disk.enter("remove", name)
        del self._disk.secrets[name]
        self._disk.leave(fault)

    def _must_exist(self, name: str) -> None:
        if name not in self._disk.directory.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


class SimFile:
    """An open file of one life: implements `sealane.engine.local.files.File`."""

    def __init__(self, disk: SimDisk, life: SimFiles, name: str, sectors: Sectors) -> None:
        self._disk = disk
        self._life = life
        self._name = name
        self._sectors = sectors
        self._open = True

    @property
    def size(self) -> int:
        self._check()
        return len(self._sectors)

    def write_at(self, position: int, buffers: Sequence[bytes | memoryview]) -> None:
        self._check()
        self._disk.write(self._name, self._sectors, position, b"".join(buffers))

    def read_at(self, position: int, length: int) -> bytes:
        self._check()
        return bytes(self._sectors.cached[position : position + length])

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def zero_fill(self, length: int, *, written: bool = True) -> None:
        self._check()
        self._disk.zero_fill(self._name, self._sectors, length, written=written)

    def truncate(self, length: int) -> None:
        self._check()
        fault = self._disk.enter("truncate", self._name)
        self._sectors.truncate(length)
        self._disk.leave(fault)

    def sync(self) -> None:
        self._check()
        self._disk.sync(self._name, self._sectors)

    def close(self) -> None:
        """Closing makes nothing durable. A dead life may still call this from its `finally`."""
        self._open = False

    def _check(self) -> None:
        self._life.check()
        if not self._open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._name)


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
