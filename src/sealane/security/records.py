"""Small records that nobody who has only the database may read or change: identities, credentials, grants.

They live in the engine's compare-and-set values, each sealed under a key of the system's own with its place as
associated data, so that a record cannot be put in the place of another one. All are held in memory: whatever is asked
on the way of a request is answered from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import msgspec

from sealane.errors import CorruptData

SYSTEM_DOMAIN = "_system"
"""Whose key seals them, and where the system's own topics are."""

R = TypeVar("R", bound=msgspec.Struct)


class StoredValue(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def version(self) -> int: ...


class Values(Protocol):
    """The part of an engine that keeps small values; see `sealane.engine.contract`."""

    async def put(self, key: str, data: bytes, *, expected: int) -> int: ...
    async def delete(self, key: str, *, expected: int) -> None: ...
    async def scan(self, prefix: str) -> Sequence[tuple[str, StoredValue]]: ...


class Seals(Protocol):
    """See `sealane.security.at_rest.sealing.Sealer`."""

    def ensure(self, domain: str) -> None: ...
    def seal(self, domain: str, plain: bytes, associated: bytes) -> bytes | memoryview: ...
    def open(self, domain: str, sealed: bytes, associated: bytes) -> bytes: ...


def resealed(seals: Seals, domain: str, key: str, data: bytes) -> bytes:
    """A value's bytes, sealed by the newest key of its domain. `CorruptData` if they were not sealed for this place."""
    place = key.encode()
    return bytes(seals.seal(domain, seals.open(domain, data, place), place))


@dataclass(frozen=True, slots=True)
class Vault:
    """Where an identity's records are kept, and what making them takes. One a node."""

    values: Values
    seals: Seals | None
    """None: records are kept as they are, by an engine that keeps nothing beyond the process."""
    clock: Callable[[], int]
    """Microseconds since 1970."""
    entropy: Callable[[int], bytes] = field(repr=False)

    def records(self, kind: str, record: type[R]) -> Records[R]:
        """All records of one kind, once they are loaded."""
        return Records(kind, record, self.values, self.seals)


class Records(Generic[R]):
    """All records of one kind by name. Changes are durable on return, and seen by readers from then on."""

    def __init__(self, kind: str, record: type[R], values: Values, seals: Seals | None) -> None:
        """`seals` None: kept as they are, by an engine that keeps nothing beyond the process."""
        self._prefix = f"{kind}/"
        self._record = record
        self._values = values
        self._seals = seals
        self._found: dict[str, R] = {}
        self._versions: dict[str, int] = {}

    async def load(self) -> None:
        """Raises `CorruptData` for a record that was tampered with, `KeyUnavailable` without its key."""
        if self._seals is not None:
            self._seals.ensure(SYSTEM_DOMAIN)
        for key, value in await self._values.scan(self._prefix):
            name = key.removeprefix(self._prefix)
            self._found[name] = self._opened(key, value.data)
            self._versions[name] = value.version

    def _opened(self, key: str, data: bytes) -> R:
        try:
            plain = data if self._seals is None else self._seals.open(SYSTEM_DOMAIN, data, key.encode())
            return msgspec.msgpack.decode(plain, type=self._record)
        except (CorruptData, msgspec.MsgspecError):
            raise CorruptData(
                f"the record {key!r} in meta.db was changed or damaged; restore it from a backup"
            ) from None

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> R | None:
        return self._found.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[tuple[str, R]]:
        """In the order of their names; what is changed meanwhile is not seen."""
        return iter(sorted(self._found.items()))

    # --- changing -----------------------------------------------------------------------------------------------------

    async def put(self, name: str, record: R) -> None:
        """Keep it under this name, instead of one that was there. Of two at a time the second raises
        `VersionMismatch`.
        """
        key = self._prefix + name
        data = msgspec.msgpack.encode(record)
        sealed = data if self._seals is None else bytes(self._seals.seal(SYSTEM_DOMAIN, data, key.encode()))
        self._versions[name] = await self._values.put(key, sealed, expected=self._versions.get(name, 0))
        self._found[name] = record

    async def remove(self, name: str) -> None:
        """Nothing happens if there is none."""
        if name in self._found:
            await self._values.delete(self._prefix + name, expected=self._versions[name])
            del self._found[name], self._versions[name]
