"""What a node knows of who may come in, without a node: in memory, at a time that the test sets."""

from __future__ import annotations

import os
from typing import Any

from sealane.engine import Engine
from sealane.engine.memory import MemoryEngine
from sealane.errors import Unauthenticated
from sealane.node.identity import Identity
from sealane.node.surroundings import Surroundings
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from sealane.security.records import Seals, Vault
from sealane.security.settings import SecuritySettings

SECOND_US = 1_000_000
BEGIN_US = 1_760_000_000 * SECOND_US


def vault_of(engine: Engine, seals: Seals | None = None) -> Vault:
    """Where records are kept by this engine, with the clock standing still."""
    return Vault(engine, seals, lambda: BEGIN_US, os.urandom)


class Clock:
    def __init__(self) -> None:
        self.now_us = BEGIN_US

    def __call__(self) -> int:
        return self.now_us

    def pass_(self, seconds: float) -> None:
        self.now_us += round(seconds * SECOND_US)


async def an_identity(
    clock: Clock,
    settings: SecuritySettings | None = None,
    *,
    engine: Engine | None = None,
    before: Identity | None = None,
) -> Identity:
    """`before`: one that was there in memory, whose records this one finds."""
    if before is not None:
        assert isinstance(before.vault.values, MemoryEngine)
        engine = before.vault.values
    identity = Identity(engine or MemoryEngine(clock), Surroundings(clock, os.urandom), settings or SecuritySettings())
    await identity.load()
    return identity


async def entered(identity: Identity, credentials: Any) -> Principal:
    return await identity.authentication.authenticate(Introduction(credentials, None, "127.0.0.1", "native"))


async def refusal(identity: Identity, credentials: Any) -> str:
    """Why it is not let in."""
    try:
        principal = await entered(identity, credentials)
    except Unauthenticated as error:
        return str(error)
    raise AssertionError(f"{principal.name} was let in")
