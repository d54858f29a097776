"""Argon2id, one at a time.

OpenSSL runs the lanes of a hash on threads of a pool that the whole process has, and two hashes at once starve each
other there: each may hold some of the threads and wait for the rest, for ever, or fail as if there were no memory. So
this process makes one after the other; with a core for each lane they would not be faster together.
"""

from __future__ import annotations

import threading

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

_turn = threading.Lock()


def derive(secret: bytes, *, salt: bytes, length: int, iterations: int, lanes: int, memory_kib: int) -> bytes:
    """A key of the secret."""
    made = Argon2id(salt=salt, length=length, iterations=iterations, lanes=lanes, memory_cost=memory_kib)
    with _turn:
        return made.derive(secret)


def hashed(secret: bytes, *, salt: bytes, length: int, iterations: int, lanes: int, memory_kib: int) -> str:
    """What can be kept of the secret: its hash with how it was made (PHC)."""
    made = Argon2id(salt=salt, length=length, iterations=iterations, lanes=lanes, memory_cost=memory_kib)
    with _turn:
        return made.derive_phc_encoded(secret)


def matches(secret: bytes, kept: str) -> bool:
    """Whether the hash, in PHC, is the secret's."""
    with _turn:
        try:
            Argon2id.verify_phc_encoded(secret, kept)
        except InvalidKey:
            return False
    return True
