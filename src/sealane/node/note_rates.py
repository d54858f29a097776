"""How often clients may add notes to the audit log: it is kept for long, and nobody's to fill."""

from __future__ import annotations

from sealane.errors import RateLimited
from sealane.security.quotas.token_bucket import TokenBucket

NOTES_PER_SECOND = 1.0
"""Of one principal: a job has one when it begins and one when it ends."""
NOTES_AT_ONCE_MAX = 60
"""After a pause: as many jobs as a script may begin one after the other."""
NOTERS_SWEPT_MIN = 1_000
"""Principals that are remembered without looking whether they have noted anything lately."""


class NoteRates:
    """A token bucket for each principal. Times are seconds of any clock that runs on."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def spend(self, principal: str, now: float) -> None:
        """Count one note. Raises `RateLimited` if there were too many."""
        if len(self._buckets) >= NOTERS_SWEPT_MIN:
            self._buckets = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full(now)}
        bucket = self._buckets.setdefault(principal, TokenBucket(NOTES_PER_SECOND, NOTES_AT_ONCE_MAX, now))
        wait = bucket.take(1, now)
        if wait:
            raise RateLimited(f"principal {principal!r}", "notes", NOTES_PER_SECOND, wait)
