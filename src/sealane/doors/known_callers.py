"""Who has made calls by a connection a moment ago: they need not prove again who they are."""

from __future__ import annotations

import asyncio
import hashlib

from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.introductions import Introduction

KNOWN_SECONDS = 30.0
"""So long nobody is asked again by the same connection; another password or other roles hold after it."""
KNOWN_MAX = 16
"""Different credentials that one connection may show at a time: a proxy may bring the calls of many."""


class KnownCallers:
    """Of one connection. Whether what they came in by is over is asked with each of their commands all the same; but a
    password, to take the worst, takes a tenth of a second to check.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Session, float]] = {}
        """By a hash of what they have shown, with when that was checked."""

    async def session(self, gate: Gate, authorization: str | None, shown: Introduction) -> Session:
        """The session of whoever shows this; `authorization` is what of it may differ from call to call. Raises
        `Unauthenticated`.
        """
        place = hashlib.sha256((authorization or "").encode()).digest()
        now = asyncio.get_running_loop().time()
        session, since = self._known.get(place, (None, 0.0))
        if session is None or now - since > KNOWN_SECONDS:
            session = await gate.enter(shown)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[place] = session, now
        return session
