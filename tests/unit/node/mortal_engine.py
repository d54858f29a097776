"""An engine in memory that dies after so many commits, and from which another node can start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine import Append
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageFailed
from sealane.node import Node, NodeSettings
from sealane.node.surroundings import Surroundings
from sealane.prompt import Prompt


class MortalEngine(MemoryEngine):
    """What it has taken before its death is there for the next node; nothing after it is."""

    lives: int | None = None
    """How many commits it still takes; None: it does not die."""
    commits = 0

    def __init__(self) -> None:
        self._moment = 1_700_000_000_000_000
        super().__init__(self.clock)
        self.died = asyncio.Event()

    def clock(self) -> int:
        self._moment += 1
        return self._moment

    @property
    def failure(self) -> BaseException | None:
        return StorageFailed("the engine is dead") if self.died.is_set() else None

    def commit(self, appends: Sequence[Append]) -> Prompt[None]:
        if self.lives == 0:
            self.died.set()
            raise StorageFailed("the engine is dead")
        if self.lives is not None:
            self.lives -= 1
        self.commits += 1
        return super().commit(appends)

    async def close(self) -> None:
        """A node's end is not this one's."""

    def revive(self) -> None:
        self.lives = None
        self.died.clear()


@asynccontextmanager
async def node_on(engine: MortalEngine, settings: NodeSettings) -> AsyncIterator[tuple[Node, Lane]]:
    """A node on what an earlier one has left."""
    node = await Node.open(engine, Surroundings(engine.clock, lambda count: bytes(count)), settings)
    async with in_process(node) as lane:
        yield node, lane
    await node.close()
