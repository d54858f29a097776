"""The machine under a measurement: what it is, how fast its disk syncs, and how much others disturbed it."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("sealane", "pyarrow", "pyroaring", "cryptography", "msgspec", "uvloop")


def facts(directory: Path) -> dict[str, str]:
    """Names and versions that belong beside a figure, and what the disk under a directory can do by itself."""
    sync_p50_ms, sync_p99_ms = sync_milliseconds(directory)
    return {
        **_versions(),
        "sealane's revision": revision(),
        "sync of 1.2 KB": f"p50 {sync_p50_ms:.3f} ms, p99 {sync_p99_ms:.3f} ms",
    }


def revision(checkout: Path = Path(__file__).parents[1]) -> str:
    """The commit that a checkout is at, and whether its package differs from it; "unknown" where git cannot tell."""

    def git(*arguments: str) -> str:
        asked = ["git", "-C", str(checkout), *arguments]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        return f"{commit}, changed" if git("status", "--porcelain", "--", "src") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _versions() -> dict[str, str]:
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    memory_kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": f"{os.cpu_count()} × {cpu}",
        "memory": f"{memory_kib / 1024**2:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def sync_milliseconds(directory: Path, *, size: int = 1_200, count: int = 200) -> tuple[float, float]:
    """p50 and p99 of a write into a zero-filled file and its fdatasync: the floor under every durable figure."""
    path = directory / "sync-probe"
    data = os.urandom(size)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, bytes(size * count), 0)
        os.fdatasync(descriptor)
        taken = []
        for index in range(count):
            begun = time.perf_counter()
            os.pwrite(descriptor, data, index * size)
            os.fdatasync(descriptor)
            taken.append((time.perf_counter() - begun) * 1_000)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


@dataclass(slots=True)
class Disturbance:
    """How much of the machine's processor time went to others between `begin` and `foreign_share`."""

    busy_ticks: int
    all_ticks: int
    own_seconds: float
    own: Callable[[], float]
    """The processor time of everything that belongs to the measurement, since any moment."""

    @classmethod
    def begin(cls, own: Callable[[], float] | None = None) -> Disturbance:
        """Without a clock of its own, what belongs to the measurement is this process and its children that ended."""
        own = own or _own_seconds
        return cls(*_ticks(), own(), own)

    def foreign_share(self) -> float:
        """Of all processor time that there was, the share that nothing of the measurement had."""
        busy, everything = _ticks()
        passed = everything - self.all_ticks
        own_ticks = (self.own() - self.own_seconds) * os.sysconf("SC_CLK_TCK")
        return max(0.0, (busy - self.busy_ticks - own_ticks) / passed) if passed > 0 else 0.0


def _ticks() -> tuple[int, int]:
    """Processor time that was used, and that there was: since the machine began, over all its processors.

    Interrupts count as nobody's: here they are mostly for what is measured, for its disk and its connections.
    """
    for line in _lines("/proc/stat"):
        if line.startswith("cpu "):
            user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, *_ = map(int, line.split()[1:])
            busy = user + nice + system + stolen
            return busy, busy + idle + waiting + interrupts + soft_interrupts
    return 0, 0


def _own_seconds() -> float:
    return sum(os.times()[:4])


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
