"""The master key of a data directory, and the domain keys it wraps.

The master key lives in one file beside the data, readable by its owner alone. It seals nothing but domain keys; domain
keys seal batches. Giving up one domain's keys (`Keyring.destroy`) therefore makes that domain's data unreadable
at once, whatever copies of its files exist; only a backup that was made before still has the keys in it.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import KeyUnavailable

KEY_BYTES = 32
NONCE_BYTES = 12
KEY_ID_MAX = 2**32 - 1
MASTER_KEY_FILE = "master.key"

_HEADER = "sealane master key, version 1: keep it secret and back it up; without it the data cannot be read"
_CHECK_LABEL = b"sealane master key check v1"
_CHECK_BYTES = 16


class KeyDestroyed(KeyUnavailable):
    """The key was given up on purpose (`Keyring.destroy`): what it sealed is gone for good."""


class WrappedKey(NamedTuple):
    """A domain key as it is stored: sealed by the master key. `wrapped` is None once the key was destroyed."""

    key_id: int
    domain: str
    wrapped: bytes | None


class Secrets(Protocol):
    """The part of a data directory that keeps secret files."""

    @property
    def location(self) -> str: ...
    def read_secret(self, name: str) -> bytes | None: ...
    def write_secret(self, name: str, data: bytes) -> None: ...


class KeyStore(Protocol):
    """Where wrapped keys are kept. Every call is durable on return."""

    def key_check(self) -> bytes | None: ...
    def save_key_check(self, check: bytes) -> None: ...
    def wrapped_keys(self) -> list[WrappedKey]: ...
    def save_wrapped_key(self, key: WrappedKey) -> None: ...
    def destroy_wrapped_keys(self, domain: str) -> None: ...


def master_key_text(key: bytes) -> bytes:
    """The content of a master key file: a line that says what it is, the key in hex, and a checksum of that."""
    body = key.hex()
    return f"{_HEADER}\nkey {body}\nsum {_sum(body)}\n".encode()


def parse_master_key(text: bytes, where: str) -> bytes:
    """Read back what `master_key_text` wrote; `where` is what an error calls the file."""
    fields: dict[str, str] = {}
    for line in text.decode("ascii", errors="replace").splitlines()[1:]:
        name, _, value = line.strip().partition(" ")
        fields[name] = value
    body = fields.get("key", "")
    if not text.startswith(b"sealane master key") or not body:
        raise KeyUnavailable(f"{where} is not a Sealane master key file; restore the right one from your backup")
    if not hmac.compare_digest(fields.get("sum", ""), _sum(body)):
        raise KeyUnavailable(f"{where} is damaged (its checksum does not match); restore it from your backup")
    try:
        key = bytes.fromhex(body)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise KeyUnavailable(f"{where} does not hold a {KEY_BYTES}-byte key; restore it from your backup")
    return key


def check_value(master: bytes) -> bytes:
    """A value that tells the right master key from a wrong one and gives nothing else away."""
    return hmac.digest(master, _CHECK_LABEL, "sha256")[:_CHECK_BYTES]


def load_master_key(secrets: Secrets, store: KeyStore, entropy: Callable[[int], bytes]) -> bytes:
    """The master key of a data directory, made on first use.

    Once the store knows of a key, a missing or different one is `KeyUnavailable`, never a new key: a new one
    would leave everything sealed before unreadable without anyone being told.
    """
    where = f"{secrets.location}/{MASTER_KEY_FILE}"
    known = store.key_check()
    text = secrets.read_secret(MASTER_KEY_FILE)
    if text is None:
        if known is not None:
            raise KeyUnavailable(
                f"{where} is missing, and the data here is sealed with it; restore it from your backup"
            )
        master = _random_key(entropy)
        # The file comes first: a crash in between leaves a key that seals nothing yet, and the next start adopts it.
        secrets.write_secret(MASTER_KEY_FILE, master_key_text(master))
    else:
        master = parse_master_key(text, where)
    if known is None:
        store.save_key_check(check_value(master))
    elif not hmac.compare_digest(known, check_value(master)):
        raise KeyUnavailable(
            f"{where} is not the key that sealed the data here; put the key back that belongs to this directory"
        )
    return master


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

    def ensure(self, domain: str) -> int:
        """The id of the key that seals this domain's data now; made, and durable, on return."""
        newest = self._newest.get(domain)
        return newest[0] if newest is not None else self._create(domain, only_if_missing=True)

    def rotate(self, domain: str) -> int:
        """Seal what comes from now on with a new key; what was sealed before stays readable."""
        return self._create(domain, only_if_missing=False)

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
            f"domain {domain!r} has no key {key_id}; the data was sealed under another data directory's keys"
        )

    def transfer(self) -> tuple[bytes, list[WrappedKey]]:
        """What another process of ours needs to open and seal the same data: hand it over a pipe, never argv or env."""
        return self._master, self._store.wrapped_keys()

    def _create(self, domain: str, *, only_if_missing: bool) -> int:
        with self._lock:
            if only_if_missing and domain in self._newest:
                return self._newest[domain][0]
            key_id = self._next_id
            if key_id > KEY_ID_MAX:
                raise KeyUnavailable(f"no key ids are left for domain {domain!r}")
            wrapped = WrappedKey(key_id, domain, self._wrap(key_id, domain, _random_key(self._entropy)))
            # Durable before the first use: a batch sealed by a key that a crash forgets would be lost.
            self._store.save_wrapped_key(wrapped)
            self._admit(wrapped)
            return key_id

    def _admit(self, wrapped: WrappedKey) -> None:
        self._next_id = max(self._next_id, wrapped.key_id + 1)
        if wrapped.wrapped is None:
            self._destroyed[wrapped.key_id] = wrapped.domain
            return
        key = self._unwrap(wrapped.key_id, wrapped.domain, wrapped.wrapped)
        self._by_id[wrapped.key_id] = (wrapped.domain, key)
        self._newest[wrapped.domain] = (wrapped.key_id, key)

    def _wrap(self, key_id: int, domain: str, key: bytes) -> bytes:
        nonce = self._entropy(NONCE_BYTES)
        return nonce + AESGCM(self._master).encrypt(nonce, key, _wrapping_context(key_id, domain))

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


def _random_key(entropy: Callable[[int], bytes]) -> bytes:
    key = entropy(KEY_BYTES)
    if len(key) != KEY_BYTES:
        raise KeyUnavailable(f"the source of randomness gave {len(key)} bytes of {KEY_BYTES}")
    return key


def _sum(body: str) -> str:
    return hashlib.sha256(b"sealane master key file\0" + body.encode()).hexdigest()[:16]
