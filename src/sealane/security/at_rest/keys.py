"""The domain keys of a data directory: each sealed by the master key, each sealing the batches of one domain.

The master key (`master_key.py`) seals nothing but domain keys. Giving up one domain's keys (`Keyring.destroy`)
therefore makes that domain's data unreadable at once, whatever copies of its files exist; only a backup that was made
before still has the keys in it.

A domain has one key that seals. After a rotation it has older ones beside, which only open: they are there until
everything that they sealed is sealed anew, and then they are given up (`Keyring.retire`).
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import KeyUnavailable
from sealane.security.at_rest.master_key import KEY_BYTES as KEY_BYTES
from sealane.security.at_rest.master_key import MASTER_KEY_FILE as MASTER_KEY_FILE
from sealane.security.at_rest.master_key import (
    NEXT_MASTER_KEY_FILE,
    CheckStore,
    Secrets,
    is_right,
    random_key,
)
from sealane.security.at_rest.master_key import check_value as check_value
from sealane.security.at_rest.master_key import load_master_key as load_master_key
from sealane.security.at_rest.master_key import master_key_text as master_key_text
from sealane.security.at_rest.master_key import parse_master_key as parse_master_key

NONCE_BYTES = 12
KEY_ID_MAX = 2**32 - 1


class KeyDestroyed(KeyUnavailable):
    """The key was given up on purpose (`Keyring.destroy`): what it sealed is gone for good."""


class WrappedKey(NamedTuple):
    """A domain key as it is stored: sealed by the master key. `wrapped` is None once the key was destroyed."""

    key_id: int
    domain: str
    wrapped: bytes | None


class KeyStore(CheckStore, Protocol):
    """Where wrapped keys are kept. Every call is durable on return."""

    def wrapped_keys(self) -> list[WrappedKey]: ...
    def save_wrapped_key(self, key: WrappedKey) -> None: ...
    def destroy_wrapped_keys(self, domain: str) -> None:
        """Erase the domain's keys; their ids stay taken, and known for what they were."""
        ...

    def retire_wrapped_keys(self, key_ids: Collection[int]) -> None:
        """Erase keys that seal nothing any more, and that they ever were."""
        ...

    def rewrap_keys(self, keys: Iterable[WrappedKey], check: bytes) -> None:
        """Put these in the place of what is stored under their ids, and the check value beside, all or nothing."""
        ...


class Keyring:
    """The domain keys of one data directory, opened. Safe to use from several threads."""

    def __init__(
        self,
        master: bytes,
        store: KeyStore,
        entropy: Callable[[int], bytes],
        *,
        keys: Iterable[WrappedKey] | None = None,
    ) -> None:
        self._master = master
        self._store = store
        self._entropy = entropy
        self._lock = threading.Lock()
        self._by_id: dict[int, tuple[str, bytes]] = {}
        self._newest: dict[str, tuple[int, bytes]] = {}
        self._destroyed: dict[int, str] = {}
        self._next_id = 1
        for wrapped in sorted(store.wrapped_keys() if keys is None else keys):
            self._admit(wrapped)

    @classmethod
    def open(cls, secrets: Secrets, store: KeyStore, entropy: Callable[[int], bytes]) -> Keyring:
        """Load or make the master key and open every domain key, or raise `KeyUnavailable` that says what to do."""
        return cls(load_master_key(secrets, store, entropy), store, entropy)

    # --- domain keys --------------------------------------------------------------------------------------------------

    def ensure(self, domain: str) -> int:
        """The id of the key that seals this domain's data now; made, and durable, on return."""
        newest = self._newest.get(domain)
        return newest[0] if newest is not None else self._create(domain, only_if_missing=True)

    def rotate(self, domain: str) -> int:
        """Seal what comes from now on with a new key; what was sealed before stays readable."""
        return self._create(domain, only_if_missing=False)

    def has(self, domain: str) -> bool:
        return domain in self._newest

    def by_domain(self) -> dict[str, list[int]]:
        """The ids of all keys that are there, ascending: the last of each domain is the one that seals."""
        found: dict[str, list[int]] = {}
        for key_id, (domain, _) in sorted(self._by_id.copy().items()):
            found.setdefault(domain, []).append(key_id)
        return found

    def outdated(self) -> dict[int, str]:
        """The keys that seal nothing new, each with its domain: what they sealed waits for being sealed anew."""
        newest = {key_id for key_id, _ in self._newest.copy().values()}
        return {key_id: domain for key_id, (domain, _) in self._by_id.copy().items() if key_id not in newest}

    def retire(self, key_ids: Collection[int]) -> None:
        """Give up outdated keys of which nothing that is stored has need any more: the caller has made sure of that."""
        with self._lock:
            needed = {key_id for key_id, _ in self._newest.values()} & set(key_ids)
            if needed:
                raise ValueError(f"key {min(needed)} seals what is written now")
            self._store.retire_wrapped_keys(key_ids)
            for key_id in key_ids:
                self._by_id.pop(key_id, None)

    def destroy(self, domain: str) -> None:
        """Give up every key of the domain for good: its data can never be opened again."""
        with self._lock:
            self._store.destroy_wrapped_keys(domain)
            self._newest.pop(domain, None)
            for key_id in [key_id for key_id, (owner, _) in self._by_id.items() if owner == domain]:
                del self._by_id[key_id]
                self._destroyed[key_id] = domain

    def sealing_key(self, domain: str) -> tuple[int, bytes]:
        """The newest key of the domain, with its id. `KeyUnavailable` unless `ensure` was called before."""
        try:
            return self._newest[domain]
        except KeyError:
            raise KeyUnavailable(f"domain {domain!r} has no key to seal with; it was destroyed or never made") from None

    def opening_key(self, domain: str, key_id: int) -> bytes:
        """The key with this id, if it is the domain's."""
        found = self._by_id.get(key_id)
        if found is not None and found[0] == domain:
            return found[1]
        if key_id in self._destroyed:
            raise KeyDestroyed(
                f"the keys of domain {self._destroyed[key_id]!r} were destroyed; its data is gone for good"
            )
        raise KeyUnavailable(
            f"domain {domain!r} has no key {key_id}: the data is of another data directory, or older than the key table"
        )

    # --- the master key -----------------------------------------------------------------------------------------------

    def transfer(self) -> tuple[bytes, list[WrappedKey]]:
        """What another process of ours needs to open and seal the same data: hand it over a pipe, never argv or env."""
        with self._lock:
            return self._master, self._store.wrapped_keys()

    def rotate_master(self, secrets: Secrets) -> None:
        """Wrap every key by a new master key, whose file takes the place of the old one. A crash leaves one or other.

        `KeyUnavailable` if the file is missing or not the right one: then it has to be restored first.
        """
        where = f"{secrets.location}/{MASTER_KEY_FILE}"
        with self._lock:
            if not is_right(secrets.read_secret(MASTER_KEY_FILE), check_value(self._master)):
                raise KeyUnavailable(f"{where} is not there as it was; put it back first (`sealane key restore`)")
            if secrets.read_secret(NEXT_MASTER_KEY_FILE) is not None:
                secrets.remove_secret(NEXT_MASTER_KEY_FILE)  # What an attempt that failed has left.
            fresh = random_key(self._entropy)
            secrets.write_secret(NEXT_MASTER_KEY_FILE, master_key_text(fresh))
            rewrapped = [
                WrappedKey(key_id, domain, self._wrap(key_id, domain, key, fresh))
                for key_id, (domain, key) in sorted(self._by_id.items())
            ]
            self._store.rewrap_keys(rewrapped, check_value(fresh))
            self._master = fresh
            secrets.rename_secret(NEXT_MASTER_KEY_FILE, MASTER_KEY_FILE)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _create(self, domain: str, *, only_if_missing: bool) -> int:
        with self._lock:
            if only_if_missing and domain in self._newest:
                return self._newest[domain][0]
            key_id = self._next_id
            if key_id > KEY_ID_MAX:
                raise KeyUnavailable(f"no key ids are left for domain {domain!r}")
            self._check_master()
            wrapped = WrappedKey(key_id, domain, self._wrap(key_id, domain, random_key(self._entropy), self._master))
            # Durable before the first use: a batch sealed by a key that a crash forgets would be lost.
            self._store.save_wrapped_key(wrapped)
            self._admit(wrapped)
            return key_id

    def _check_master(self) -> None:
        """After an exchange of which nobody knows how it ended, a key wrapped by the wrong one would never open."""
        known = self._store.key_check()
        if known is not None and not hmac.compare_digest(known, check_value(self._master)):
            raise KeyUnavailable("the master key was exchanged and this process does not know the new one; restart it")

    def _admit(self, wrapped: WrappedKey) -> None:
        self._next_id = max(self._next_id, wrapped.key_id + 1)
        if wrapped.wrapped is None:
            self._destroyed[wrapped.key_id] = wrapped.domain
            return
        key = self._unwrap(wrapped.key_id, wrapped.domain, wrapped.wrapped)
        # In this order: no key counts as outdated, not even for a moment, while it is still the one that seals.
        self._newest[wrapped.domain] = (wrapped.key_id, key)
        self._by_id[wrapped.key_id] = (wrapped.domain, key)

    def _wrap(self, key_id: int, domain: str, key: bytes, master: bytes) -> bytes:
        nonce = self._entropy(NONCE_BYTES)
        return nonce + AESGCM(master).encrypt(nonce, key, _wrapping_context(key_id, domain))

    def _unwrap(self, key_id: int, domain: str, wrapped: bytes) -> bytes:
        nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        try:
            return AESGCM(self._master).decrypt(nonce, sealed, _wrapping_context(key_id, domain))
        except (InvalidTag, ValueError):
            raise KeyUnavailable(
                f"key {key_id} of domain {domain!r} does not open with this master key: the key table was damaged; "
                "restore meta.db from your backup"
            ) from None


def _wrapping_context(key_id: int, domain: str) -> bytes:
    return b"sealane domain key v1\0" + key_id.to_bytes(4, "little") + domain.encode()
