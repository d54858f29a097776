"""Whether a node has time for compaction: how much is written just now. Pure."""

from __future__ import annotations

LOOK_SECONDS = 1.0
"""For so long it is watched how much is written."""


class WritePace:
    """Tells a burst from a node that has time. Times are monotonic, in seconds."""

    def __init__(self, bytes_per_second_max: int) -> None:
        self._bytes_per_second_max = bytes_per_second_max
        self._since: tuple[float, int] | None = None
        """Since when it is watched, and what had been written by then."""

    def seconds_to_wait(self, now: float, written_bytes: int) -> float:
        """0 if no more than so many bytes a second were written of late; otherwise, or if that is not known yet, after
        how long to ask again. `written_bytes` is all that has been written so far.
        """
        if self._since is not None:
            begun, before_bytes = self._since
            seconds = now - begun
            if seconds < LOOK_SECONDS:
                return LOOK_SECONDS - seconds
            if written_bytes - before_bytes <= self._bytes_per_second_max * seconds:
                self._since = None
                return 0.0
        self._since = (now, written_bytes)
        return LOOK_SECONDS
