"""The key directory: under its name each recipient's public keys, where senders find them.

A recipient has several keys while it changes from one to the next: what is sealed for it is sealed for all of them. Who
does not want to trust the node with that pins the fingerprint; see `sealane.client.sealing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from sealane.errors import AlreadyExists, InvalidArgument, NotFound, RecipientNotFound
from sealane.security.accounts import check_account_name
from sealane.security.envelopes import KeyKind, PublicKey, same_fingerprint
from sealane.security.records import Vault

RECIPIENT_KEYS_MAX = 8
"""Of one recipient: each message for it grows by each of them, and who rotates keys needs two."""
COMMENT_CHARS_MAX = 200


class RegisteredKey(msgspec.Struct, frozen=True):
    fingerprint: str
    algorithm: KeyKind
    pem: str
    registered_us: int
    by: str
    """Who registered it."""
    comment: str = ""


class Recipient(msgspec.Struct, frozen=True):
    keys: tuple[RegisteredKey, ...]


class Directory:
    """All recipients, in memory; changes are durable on return."""

    def __init__(self, vault: Vault) -> None:
        self._records = vault.records("public-key", Recipient)
        self._clock = vault.clock
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        await self._records.load()

    def keys(self, name: str) -> tuple[RegisteredKey, ...]:
        """Raises `RecipientNotFound`."""
        recipient = self._records.get(name)
        if recipient is None:
            raise RecipientNotFound(name, "register its public key: `sealane recipient register NAME --public-key …`")
        return recipient.keys

    def all(self) -> list[tuple[str, tuple[RegisteredKey, ...]]]:
        """By name, in order."""
        return [(name, recipient.keys) for name, recipient in self._records]

    async def register(self, name: str, pem: str, *, by: str, comment: str = "") -> RegisteredKey:
        """Another key under this name. Raises `InvalidArgument` for what is none, `AlreadyExists` if it is there."""
        check_account_name(name)
        key = PublicKey.from_pem(pem)
        if len(comment) > COMMENT_CHARS_MAX:
            raise InvalidArgument("comment", f"has {len(comment):,} characters, at most {COMMENT_CHARS_MAX}")
        registered = RegisteredKey(key.fingerprint, key.algorithm, key.pem(), self._clock(), by, comment)
        async with self._changing:
            before = self._keys_of(name)
            if any(each.fingerprint == key.fingerprint for each in before):
                raise AlreadyExists("key", key.fingerprint, f"{name!r} has it registered")
            if len(before) >= RECIPIENT_KEYS_MAX:
                problem = f"{name!r} has {len(before)} keys, at most {RECIPIENT_KEYS_MAX} are possible"
                raise InvalidArgument("public_key", f"{problem}; remove one that is no longer used")
            await self._records.put(name, Recipient((*before, registered)))
        return registered

    async def remove(self, name: str, fingerprint: str | None = None) -> list[str]:
        """Give up this key, or all that the recipient has. Returns their fingerprints; raises `NotFound`."""
        async with self._changing:
            before = self.keys(name)
            kept = tuple(
                each
                for each in before
                if fingerprint is not None and not same_fingerprint(each.fingerprint, fingerprint)
            )
            if len(kept) == len(before):
                raise NotFound(str(fingerprint), f"{name!r} has {_listed(before)}")
            if kept:
                await self._records.put(name, Recipient(kept))
            else:
                await self._records.remove(name)
        return [each.fingerprint for each in before if each not in kept]

    def _keys_of(self, name: str) -> tuple[RegisteredKey, ...]:
        recipient = self._records.get(name)
        return recipient.keys if recipient is not None else ()


def _listed(keys: Iterable[RegisteredKey]) -> str:
    return ", ".join(key.fingerprint for key in keys)
