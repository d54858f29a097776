"""Passwords: kept as Argon2id hashes, checked beside the event loop, one at a time."""

from __future__ import annotations

import asyncio
import base64
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from sealane.errors import InvalidArgument, Unavailable
from sealane.security import argon2

PASSWORD_CHARS_MIN = 8
"""As NIST SP 800-63B has it; what guesses is stopped by the lock-out, not by rules about characters."""
PASSWORD_CHARS_MAX = 1_024
"""Room for any passphrase, and nothing to keep a node busy with."""
MEMORY_KIB = 64 * 1024
PASSES = 3
LANES = 4
"""The second choice of RFC 9106, for where memory is short: 64 MiB, three passes, four lanes; about 0.15 s on one core,
and more than OWASP asks for."""
HASHINGS_MAX = 1
"""Passwords that are hashed at a time: 64 MiB, however many strangers knock, and no more than `argon2` can."""
HASHINGS_WAITING_MAX = 32
"""Logins that wait for their turn: about five seconds' worth, which is less than a handshake may take. More are asked
to come again."""

T = TypeVar("T")

_SALT_BYTES = 16
_HASH_BYTES = 32


def check_password(password: str) -> None:
    """Raise `InvalidArgument` unless it may be a new one. It is not repeated."""
    if not PASSWORD_CHARS_MIN <= len(password) <= PASSWORD_CHARS_MAX:
        problem = f"it has {len(password):,} characters, not {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX:,}"
        raise InvalidArgument("password", problem)


class Passwords:
    """Makes hashes and checks passwords against them. Neither blocks the event loop."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._turns = asyncio.Semaphore(HASHINGS_MAX)
        self._waiting = 0
        salt, digest = (_base64(bytes(count)) for count in (_SALT_BYTES, _HASH_BYTES))
        self._nobodys = f"$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${digest}"

    async def hashed(self, password: str) -> str:
        """What is kept of a password: its hash with how it was made (PHC)."""
        salt = self._entropy(_SALT_BYTES)
        cost = {"iterations": PASSES, "lanes": LANES, "memory_kib": MEMORY_KIB}
        return await self._in_turn(lambda: argon2.hashed(_bytes_of(password), salt=salt, length=_HASH_BYTES, **cost))

    async def matches(self, password: str, kept: str | None) -> bool:
        """Whether it is the one. `kept` None: it is not, after just as long a time."""

        def check() -> bool:
            fits = argon2.matches(_bytes_of(password), self._nobodys if kept is None else kept)
            return fits and kept is not None

        return await self._in_turn(check)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        if self._waiting >= HASHINGS_WAITING_MAX:
            raise Unavailable(f"{HASHINGS_WAITING_MAX} logins by password wait already: try again in a moment")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        # The turn ends with the work and not with the wait: a client that leaves early must not let another hash begin.
        running = asyncio.ensure_future(asyncio.to_thread(work))
        running.add_done_callback(lambda _: self._turns.release())
        return await asyncio.shield(running)


def _bytes_of(password: str) -> bytes:
    """The same for however a keyboard composes its accents."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).rstrip(b"=").decode()
