"""How someone introduces themselves at a door, and who can tell from it who they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sealane.security.principals import Principal

Credentials = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Introduction:
    """What is shown of oneself on coming in. Its secrets are in no `repr`."""

    credentials: Credentials | None = field(default=None, repr=False)
    """What the protocol carries: `{"key": …}`, `{"user": …, "password": …}`, `{"token": …}` and whatever else an
    authenticator understands."""
    certificate: bytes | None = field(default=None, repr=False)
    """The peer's certificate (DER). TLS has checked its chain, its dates and that the peer holds its key, no more."""
    address: str = ""
    """The host it comes from."""
    door: str = ""
    appointed: str = ""
    """Who everyone is who shows nothing, by the settings of a door whose protocol has no word for it: an account."""


Authenticate = Callable[[Introduction], Awaitable[Principal]]
"""Tells who it is. Raises `Unauthenticated`, with a text that tells a stranger nothing about what exists here."""


class Authenticator(Protocol):
    """One way to tell who someone is. Others than Sealane's own are entry points of the group `sealane.authenticators`:
    a callable that is given the node's `Identity` and returns one of these.
    """

    @property
    def name(self) -> str:
        """For the audit log and for errors."""

    async def authenticate(self, shown: Introduction) -> Principal | None:
        """Who it is; None if nothing that was shown is for this authenticator. Raises `Unauthenticated`."""
