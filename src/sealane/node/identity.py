"""What a node knows of who may come in and what they may do: loaded at its start, asked from memory."""

from __future__ import annotations

from sealane.engine import Engine
from sealane.engine.contract import KeepsSecrets
from sealane.node.surroundings import Surroundings
from sealane.security.grants import Grants
from sealane.security.records import Seals


class Identity:
    """Made by `Identity.open`."""

    def __init__(self, engine: Engine, surroundings: Surroundings) -> None:
        self.engine = engine
        self.surroundings = surroundings
        self.seals: Seals | None = engine.sealer if isinstance(engine, KeepsSecrets) else None
        """What records are sealed with; None where nothing outlives the process."""
        self.grants = Grants()

    @classmethod
    async def open(cls, engine: Engine, surroundings: Surroundings) -> Identity:
        """All that the engine keeps of it is loaded when this returns."""
        return cls(engine, surroundings)
