"""A token bucket: so much a second, and a little more at once after a pause."""

from __future__ import annotations


class TokenBucket:
    """Fills at `rate` a second up to `burst`, and is full when it is made.

    Over any stretch of time it gives away no more than `rate` times its seconds, and `burst`. What is larger than the
    burst is given once the bucket is full, which is then in debt until it has earned it: such an amount waits its
    turn, and not for ever.

    Times are seconds on a clock that only goes forwards; if it goes back after all, nothing is earned until it has
    caught up.
    """

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        assert min(rate, burst) > 0, "a bucket that never fills lets nobody through"
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = now

    def level(self, now: float) -> float:
        """What is left; below 0 in debt."""
        if now > self._at:
            self._level = min(self.burst, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def is_full(self, now: float) -> bool:
        return self.level(now) >= self.burst

    def wait_seconds(self, amount: float, now: float) -> float:
        """How long until so much could be taken, if nobody else takes anything; 0: now."""
        if amount <= 0:
            return 0.0
        missing = min(amount, self.burst) - self.level(now)
        return missing / self.rate if missing > 0 else 0.0

    def spend(self, amount: float) -> None:
        """Take it, whether it is there or not."""
        self._level -= amount

    def take(self, amount: float, now: float) -> float:
        """Take so much if it can be; otherwise nothing is taken, and the answer is how many seconds to wait."""
        wait = self.wait_seconds(amount, now)
        if wait == 0:
            self.spend(amount)
        return wait

    def change(self, rate: float, burst: float, now: float) -> None:
        """Fill at another rate from now on. What is in it stays, as far as it fits."""
        level = self.level(now)
        self.rate = rate
        self.burst = burst
        self._level = min(level, burst)
