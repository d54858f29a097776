"""How many messages a consumer has asked for and not handed out: enough for its pace, and no more than that.

Too few, and a fast loop waits for its next batch while the node waits to be asked. Too many, and they wait here, behind
a slow handler, while other consumers of the subscription have nothing to do.
"""

from __future__ import annotations

AHEAD_SECONDS = 0.02
"""What a consumer handles in so long is asked for ahead: several times as long as an answer takes from a busy node."""
AHEAD_BYTES = 3 << 20
"""No more than so much of it: with more, messages of 1 KiB were slower, presumably as none of them was in the
processor's cache any more when it was handed out."""
GROWTH_MAX = 8
"""How many times its first size a window may have."""


class Window:
    """Starts at `size` and follows the pace of the loop, up to `growth` times that. Pure: it is told the time.

    It is always a multiple of its first size: stored batches that fit that one are not cut in two by an odd credit.
    """

    __slots__ = ("_asked_at", "_growth", "_message_bytes", "_open", "_size", "_size_min", "_taken")

    def __init__(self, size: int, growth: int = 1) -> None:
        self._size = self._size_min = size
        self._growth = growth
        self._open = 0
        """Messages that were asked for and have not been handed out."""
        self._taken = 0
        """Handed out since the last time that more were asked for."""
        self._message_bytes = 1.0
        self._asked_at = 0.0

    def begin(self, now: float) -> int:
        """How many to ask for at first."""
        self._asked_at = now
        self._open = self._size
        return self._size

    def take(self, count: int) -> bool:
        """So many were handed out. Whether to `ask` for more: in strides, since each wakes the node."""
        self._open -= count
        self._taken += count
        return self._taken * 2 >= self._size

    def ask(self, now: float, message_bytes: float = 0) -> int:
        """How many more to ask for by now, if messages are about so long (0: as before)."""
        self._message_bytes = message_bytes or self._message_bytes
        if self._growth > 1:
            pace = self._taken / max(now - self._asked_at, 1e-6)
            wanted = min(pace * AHEAD_SECONDS, AHEAD_BYTES / self._message_bytes, 2 * self._size)
            self._size = self._size_min * max(1, min(int(wanted / self._size_min), self._growth))
        self._asked_at = now
        self._taken = 0
        more = max(0, self._size - self._open)
        self._open += more
        return more
