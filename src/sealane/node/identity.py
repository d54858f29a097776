"""What a node knows of who may come in and what they may do: loaded at its start, asked from memory."""

from __future__ import annotations

from sealane.engine import Engine
from sealane.engine.contract import KeepsSecrets
from sealane.node.surroundings import Surroundings
from sealane.security.accounts import Accounts
from sealane.security.grants import Grants
from sealane.security.quotas import Quotas
from sealane.security.records import Seals
from sealane.security.settings import SecuritySettings


class Identity:
    """Made by `Identity.open`, one a node."""

    def __init__(self, engine: Engine, surroundings: Surroundings, settings: SecuritySettings) -> None:
        self.settings = settings
        self.surroundings = surroundings
        self.values = engine
        """Where records are kept."""
        self.seals: Seals | None = engine.sealer if isinstance(engine, KeepsSecrets) else None
        """What records are sealed with; None where nothing outlives the process."""
        self.accounts = Accounts(engine, self.seals, surroundings.clock)
        self.quotas = Quotas(settings.quotas, engine, self.seals)
        self.grants = Grants(engine, self.seals)

    async def load(self) -> None:
        """Read all that the engine keeps of it."""
        await self.accounts.load()
        await self.grants.load()
        await self.quotas.load()
