"""What an engine that seals its data can be asked about its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Progress = Callable[[int, int], None]
"""Told how many bytes are done, and of how many."""


@dataclass(frozen=True, slots=True)
class DomainKey:
    """The key that seals a domain's data now."""

    domain: str
    key_id: int
    made_us: int | None
    """None: an older version made it, and did not note when."""
    older: int
    """How many keys are there beside, until nothing is sealed by them any more."""


@dataclass(frozen=True, slots=True)
class KeysStatus:
    domains: tuple[DomainKey, ...]
    """By name."""
    bytes_left: int
    """What is still sealed by older keys, as far as it is known."""
    bytes_total: int

    @property
    def resealing(self) -> bool:
        return any(each.older for each in self.domains)


class DomainKeys(Protocol):
    """The keys of one data directory."""

    def status(self) -> KeysStatus: ...

    async def rotate(self, domain: str) -> int:
        """Make a new key, durable on return: all that is written from then on is sealed by it. Returns its id.

        What older keys have sealed is sealed anew in the background, over restarts if need be, and then those are
        destroyed. `KeyUnavailable` for a domain that has no key.
        """
        ...

    async def resealed(self, progress: Progress | None = None) -> None:
        """Wait until no domain has an older key. Whoever stops waiting stops nothing."""
        ...

    async def rotate_master(self) -> None:
        """Put another master key in the place of the one that is there, and wrap every key by it."""
        ...

    async def destroy(self, domain: str) -> None:
        """Forget all partitions of the domain and destroy its keys: what they sealed can never be opened again.

        Durable on return. Whoever opens a partition of the domain afterwards gets a new key.
        """
        ...


@runtime_checkable
class KeepsKeys(Protocol):
    """An engine whose data is sealed by keys of its own."""

    @property
    def keys(self) -> DomainKeys: ...
