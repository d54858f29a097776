"""Where a group of commits is written: on the event loop, or on a thread. Pure.

On a thread the loop is free while the disk works, and pays for handing the group over and back: two wake-ups, and a
thread that wants the interpreter back in the middle of what the loop does. With `k` commits in a group, each of which
the loop works `c` seconds for, a write of `w` seconds and a hand-over of `h`, a cycle takes `k·c + w` on the loop and
`max(k·c, w) + h` on a thread. So the loop writes by itself if the write takes no longer than the hand-over, or if it
has hardly anything else to do.
"""

from __future__ import annotations

from typing import Literal

_WEIGHT = 0.25
"""How much the latest flush counts in the running averages: about the last four decide."""
_STEP = 1.1
"""By how much a flush moves the time that is typical, up or down: it settles at the median, and a disk that takes long
once in a while is not taken for a slow one."""

INLINE_COMMITS_MAX = 1.5
"""Up to so many in a group on average, the loop has hardly anything to do that it could do meanwhile."""
SHORT_SECONDS_MAX = 0.0007
"""A write on the loop that takes no longer costs about as much as handing it over: measured beside a producer and a
consumer on two cores, where a write took 0.4 ms on the loop and 1.0 ms on a thread."""
TRY_AGAIN_AFTER = 16
"""Of so many small groups that went to the thread one is written on the loop, to learn how long that takes by now."""


class FlushPolicy:
    """Chooses for each group, from what waits and from what the last flushes saw."""

    def __init__(
        self, commit: Literal["auto", "inline", "thread"], *, inline_bytes_max: int, inline_seconds_max: float
    ) -> None:
        self._fixed = None if commit == "auto" else commit == "inline"
        self._inline_bytes_max = inline_bytes_max
        self._inline_seconds_max = inline_seconds_max
        self._commits = 1.0
        self._seconds = 0.0
        self._typical_seconds = 0.0
        """How long a small group takes on the loop; 0: not known."""
        self._handed_over = 0
        """Small groups that went to the thread one after the other."""

    def inline(self, commits: int, group_bytes: int) -> bool:
        """Whether the loop is to write what waits."""
        if self._fixed is not None:
            return self._fixed
        if group_bytes > self._inline_bytes_max or self._seconds > self._inline_seconds_max:
            return False
        if self._typical_seconds <= SHORT_SECONDS_MAX or self._handed_over >= TRY_AGAIN_AFTER:
            return True
        return commits <= INLINE_COMMITS_MAX and self._commits <= INLINE_COMMITS_MAX

    def saw(self, commits: int, group_bytes: int, seconds: float, *, inline: bool) -> None:
        """Learn from a flush. Large groups take long for their size; how long a small one takes, they do not tell."""
        self._commits += _WEIGHT * (commits - self._commits)
        if group_bytes > self._inline_bytes_max:
            return
        self._seconds += _WEIGHT * (seconds - self._seconds)
        if not inline:
            # Of what this took a part was waiting for the interpreter: it says nothing of what it takes on the loop.
            self._handed_over += 1
            return
        self._handed_over = 0
        before = self._typical_seconds
        self._typical_seconds = seconds if not before else before * (_STEP if seconds > before else 1 / _STEP)
