"""The master key of a data directory: one file beside the data, readable by its owner alone.

It is made on first use, checked before anything is served, and exchanged for another one only on purpose. Two files are
there while it is exchanged, and a crash may leave both: the check value in the key store, which changes in one
transaction with the keys that the master key wraps, says which of them is right.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Protocol

from sealane.errors import KeyUnavailable

KEY_BYTES = 32
MASTER_KEY_FILE = "master.key"
NEXT_MASTER_KEY_FILE = "master.key.next"
"""The key that is about to take the place of the other one."""

_HEADER = "sealane master key, version 1: keep it secret and back it up; without it the data cannot be read"
_CHECK_LABEL = b"sealane master key check v1"
_CHECK_BYTES = 16


class ReadableSecrets(Protocol):
    """Secret files that may be looked at."""

    @property
    def location(self) -> str: ...
    def read_secret(self, name: str) -> bytes | None: ...


class Secrets(ReadableSecrets, Protocol):
    """The part of a data directory that keeps secret files. Every change is durable on return."""

    def write_secret(self, name: str, data: bytes) -> None: ...
    def rename_secret(self, old: str, new: str) -> None: ...
    def remove_secret(self, name: str) -> None: ...


class CheckStore(Protocol):
    """Where the check value is kept. Every call is durable on return."""

    def key_check(self) -> bytes | None: ...
    def save_key_check(self, check: bytes) -> None: ...


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
    if not hmac.compare_digest(fields.get("sum", "").encode(), _sum(body).encode()):
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


def is_right(text: bytes | None, known: bytes) -> bool:
    """Whether this is the content of the key file that `known` is the check value of."""
    if text is None:
        return False
    try:
        return hmac.compare_digest(check_value(parse_master_key(text, "")), known)
    except KeyUnavailable:
        return False


def read_master_key(secrets: ReadableSecrets, known: bytes | None) -> bytes | None:
    """The content of the key file, or of the one that is about to take its place if that is the right one already."""
    text = secrets.read_secret(MASTER_KEY_FILE)
    if known is not None and not is_right(text, known):
        coming = secrets.read_secret(NEXT_MASTER_KEY_FILE)
        if is_right(coming, known):
            return coming
    return text


def load_master_key(secrets: Secrets, store: CheckStore, entropy: Callable[[int], bytes]) -> bytes:
    """The master key of a data directory, made on first use.

    Once the store knows of a key, a missing or different one is `KeyUnavailable`, never a new key: a new one
    would leave everything sealed before unreadable without anyone being told.
    """
    where = f"{secrets.location}/{MASTER_KEY_FILE}"
    known = store.key_check()
    if known is not None:
        settle_master_key(secrets, known)
    text = secrets.read_secret(MASTER_KEY_FILE)
    if text is None:
        if known is not None:
            raise KeyUnavailable(
                f"{where} is missing, and the data here is sealed with it; restore it from your backup "
                "(`sealane key restore`)"
            )
        master = random_key(entropy)
        # The file comes first: a crash in between leaves a key that seals nothing yet, and the next start adopts it.
        secrets.write_secret(MASTER_KEY_FILE, master_key_text(master))
    else:
        master = parse_master_key(text, where)
    if known is None:
        store.save_key_check(check_value(master))
    elif not hmac.compare_digest(known, check_value(master)):
        raise KeyUnavailable(
            f"{where} is not the key that sealed the data here; put the key back that belongs to this directory "
            "(`sealane key restore`)"
        )
    return master


def settle_master_key(secrets: Secrets, known: bytes) -> None:
    """Finish an exchange of keys that was cut short, or undo it, whichever the check value says."""
    coming = secrets.read_secret(NEXT_MASTER_KEY_FILE)
    if coming is None:
        return
    if is_right(coming, known):
        secrets.rename_secret(NEXT_MASTER_KEY_FILE, MASTER_KEY_FILE)
    elif is_right(secrets.read_secret(MASTER_KEY_FILE), known):
        secrets.remove_secret(NEXT_MASTER_KEY_FILE)


def random_key(entropy: Callable[[int], bytes]) -> bytes:
    key = entropy(KEY_BYTES)
    if len(key) != KEY_BYTES:
        raise KeyUnavailable(f"the source of randomness gave {len(key)} bytes of {KEY_BYTES}")
    return key


def _sum(body: str) -> str:
    return hashlib.sha256(b"sealane master key file\0" + body.encode()).hexdigest()[:16]
