"""How a subscription delivers: its mode, lease, retries. Journalled with it, so that it outlives its consumers."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from sealane.errors import InvalidArgument

Mode = Literal["queue", "exclusive", "key-shared", "broadcast"]
MODES: tuple[str, ...] = get_args(Mode)

LEASE_SECONDS_DEFAULT = 30.0
LEASE_SECONDS_MAX = 12 * 3600.0
"""Longer leases would hide a dead consumer for a working day; extend them instead."""
DELAY_SECONDS_MAX = 100 * 365 * 24 * 3600
"""A hundred years: whatever waits, the moment at which it is due can be written down."""
ATTEMPTS_MAX = 1_000
"""Attempts are kept as one bitmap a level; more levels would make a nack slow for everyone."""
SECOND_US = 1_000_000


class Retry(msgspec.Struct, frozen=True, array_like=True):
    """When a failed message comes back, and when it is dead."""

    kind: Literal["exponential", "fixed"] = "exponential"
    delay_seconds: float = 1.0
    """The first (exponential) or every (fixed) delay."""
    delay_seconds_max: float = 300.0
    attempts_max: int = 16

    def delay_us(self, failures: int) -> int:
        """The pause after a message has failed `failures` times (from 1)."""
        if self.kind == "fixed":
            return round(self.delay_seconds * SECOND_US)
        doublings = min(failures - 1, 60)
        return round(min(self.delay_seconds * 2.0**doublings, self.delay_seconds_max) * SECOND_US)


class SubscriptionConfig(msgspec.Struct, frozen=True, array_like=True):
    mode: Mode = "queue"
    lease_seconds: float = LEASE_SECONDS_DEFAULT
    filter: str | None = None
    retry: Retry = Retry()

    @property
    def lease_us(self) -> int:
        return round(self.lease_seconds * SECOND_US)


def check_config(config: SubscriptionConfig) -> None:
    """Refuse values that cannot work, naming the argument."""
    if config.mode not in MODES:
        raise InvalidArgument("mode", f"{config.mode!r} is not one of {', '.join(MODES)}")
    if not 0 < config.lease_seconds <= LEASE_SECONDS_MAX:
        raise InvalidArgument("lease_seconds", f"{config.lease_seconds} is not in 0 to {LEASE_SECONDS_MAX:g} seconds")
    retry = config.retry
    if retry.kind not in ("exponential", "fixed"):
        raise InvalidArgument("retry.kind", f"{retry.kind!r} is neither 'exponential' nor 'fixed'")
    if not 0 <= retry.delay_seconds <= DELAY_SECONDS_MAX or not 0 <= retry.delay_seconds_max <= DELAY_SECONDS_MAX:
        raise InvalidArgument("retry.delay_seconds", f"delays go from 0 to {DELAY_SECONDS_MAX:,} seconds")
    if retry.kind == "exponential" and retry.delay_seconds_max < retry.delay_seconds:
        raise InvalidArgument("retry.delay_seconds_max", "the longest delay must be at least the first")
    if not 1 <= retry.attempts_max <= ATTEMPTS_MAX:
        raise InvalidArgument("retry.attempts_max", f"{retry.attempts_max} is not in 1 to {ATTEMPTS_MAX}")
