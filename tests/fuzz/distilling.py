"""Of many inputs those few that together reach all that the many do: what is worth keeping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import sealane
from tests.fuzz.target import Target

KEPT_BYTES_MAX = 16 << 10
"""Of all inputs that are kept for one target: they are in the repository."""
INPUT_BYTES_MAX = 2_048

_SOURCE = str(Path(sealane.__file__).parent)

Reached = frozenset[tuple[str, int, int]]
"""Steps from a line to the next, by file."""


def distilled(target: Target, inputs: Iterable[bytes], kept: Sequence[bytes] = ()) -> list[bytes]:
    """The inputs that reach something that neither the seeds, nor what is kept, nor a shorter one does."""
    reached: set[tuple[str, int, int]] = set()
    for known in (*target.seeds, *kept):
        reached |= reach(target, known)
    room = KEPT_BYTES_MAX - sum(map(len, kept))
    chosen = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        if len(data) > min(room, INPUT_BYTES_MAX):
            break
        fresh = reach(target, data) - reached
        if fresh:
            reached |= fresh
            room -= len(data)
            chosen.append(data)
    return chosen


def reach(target: Target, data: bytes) -> Reached:
    """What of Sealane's own code an input runs through."""
    steps: set[tuple[str, int, int]] = set()

    def entered(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(_SOURCE):
            return None
        before = 0

        def stepped(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            nonlocal before
            if event == "line":
                steps.add((frame.f_code.co_filename, before, frame.f_lineno))
                before = frame.f_lineno
            return stepped

        return stepped

    traced = sys.gettrace()
    sys.settrace(entered)
    try:
        target.check(data)
    finally:
        sys.settrace(traced)
    return frozenset(steps)
