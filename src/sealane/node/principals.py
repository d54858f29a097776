"""Who is asking, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealane.errors import Forbidden

Action = Literal["publish", "consume", "manage", "admin"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking."""

    name: str
    domain: str = "default"
    """Where its bare names are."""
    admin: bool = False


ADMIN = Principal("admin", admin=True)
"""Whoever runs the broker in a process of their own, or comes in by a door without authentication."""


def authorise(principal: Principal, action: Action, resource: str) -> None:
    """Raise `Forbidden` unless the principal may do this to `domain/name`. Nowhere else is that decided."""
    if not principal.admin:
        raise Forbidden(principal.name, action, resource, "it has no grant for that")
