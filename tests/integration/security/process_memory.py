"""What a process of ours has in its memory, as whoever owns the machine could read it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)")
_NOT_MEMORY = ("[vvar]", "[vvar_vclock]", "[vsyscall]", "/dev/")
CHUNK_BYTES = 1 << 24


def occurrences(pid: int, marker: bytes) -> int:
    """How often these bytes are in the readable memory of a process."""
    return sum(found.count(marker) for found in _memory(pid, len(marker) - 1))


def _memory(pid: int, overlap: int) -> Iterator[bytes]:
    """All of it in pieces; each begins with the end of the one before it, so that nothing hides on a bound."""
    try:
        memory = Path(f"/proc/{pid}/mem").open("rb", buffering=0)  # noqa: SIM115 - closed below
    except (FileNotFoundError, PermissionError) as error:
        problem = f"the memory of another process cannot be read here: {error}"
        # Without it the proof is none: a laptop may do without, a build may not.
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)
    with memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            matched = _REGION.match(line)
            assert matched is not None, line
            start, stop = int(matched[1], 16), int(matched[2], 16)
            if not matched[3].startswith("r") or matched[4].startswith(_NOT_MEMORY):
                continue
            before = b""
            while start < stop:
                try:
                    memory.seek(start)
                    data = memory.read(min(CHUNK_BYTES, stop - start))
                except (OSError, OverflowError):
                    break  # Mapped, and not backed by anything.
                if not data:
                    break
                start += len(data)
                yield before + data
                before = data[-overlap:] if overlap else b""
