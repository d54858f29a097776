"""Who is asking: a principal, by whatever credential it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealane.message.names import DEFAULT_DOMAIN

Action = Literal["publish", "consume", "manage", "admin"]
"""What can be done to `domain/name`: `manage` is making, changing and deleting; `admin` is everything."""
Kind = Literal["local", "certificate", "key", "user", "token", "door"]
"""By what a principal came in: `local` is whoever runs the broker in a process of their own, `door` whoever came by a
door that stands for an account."""

ADMIN_ROLE = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. What it may do is for `Grants` to say."""

    name: str
    domain: str = DEFAULT_DOMAIN
    """Where its bare names are."""
    roles: frozenset[str] = frozenset()
    kind: Kind = "local"
    credential: str = ""
    """What it came in by, and what is revoked: `certificate:<serial>`, `key:<id>`, `user:<name>`, `token:<id>`; empty
    for what cannot be revoked."""
    client_id: str = ""
    """SHA-256 of its certificate in hex; of other credentials what `credential` says."""
    expires_us: int | None = None
    """When its credential ends, in µs since 1970."""
    narrowed: tuple[tuple[Action, str], ...] = ()
    """Actions and patterns as in grants: beside what it is granted, one of these must take in what it asks for. Empty:
    its credential narrows nothing."""


ADMIN = Principal("admin", roles=frozenset({ADMIN_ROLE}))
"""Whoever runs the broker in a process of their own, or comes in by a door without authentication."""
