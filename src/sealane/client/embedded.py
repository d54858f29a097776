"""The broker inside a Python process: in memory, or durable in a directory."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from sealane.client.broker import Landed
from sealane.client.lane import Lane
from sealane.engine import Engine
from sealane.engine.memory import MemoryEngine
from sealane.errors import Closed
from sealane.message import Batch
from sealane.node import Node, NodeSettings
from sealane.node.receipts import Receipts
from sealane.node.session import Session
from sealane.node.surroundings import of_this_machine
from sealane.prompt import Prompt
from sealane.security.principals import ADMIN

if TYPE_CHECKING:
    from sealane.engine.local import StorageSettings


class InProcessBroker(Session):
    """A session with a node of this process, as a lane needs it."""

    def hand_over(self, topic: str, batch: Batch, landed: Landed) -> None:
        def tell(durable: Prompt[Receipts]) -> None:
            if durable.cancelled():
                landed(None, Closed("the broker closed"))
            elif (error := durable.exception()) is not None:
                landed(None, error)
            else:
                landed(durable.result(), None)

        self.publish(topic, batch).when_done(tell)


def in_process(node: Node) -> Lane:
    """A lane to a node of this process, as its admin."""
    return Lane(InProcessBroker(node, ADMIN))


class EmbeddedLane:
    """What `sealane.embedded` returns: opens on entering the block, closes the broker on leaving it."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: NodeSettings | None = None,
        storage: StorageSettings | None = None,
        audited: bool = False,
    ) -> None:
        """`audited`: see `Node.open`."""
        self._audited = audited
        self._path = path
        self._settings = settings
        self._storage = storage
        self._lane: Lane | None = None
        self._node: Node | None = None

    async def __aenter__(self) -> Lane:
        surroundings = of_this_machine()
        engine: Engine
        if self._path is None:
            engine = MemoryEngine(surroundings.clock)
        else:
            # Loaded when it is used: who connects to a node elsewhere has no need of it.
            from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings

            engine = await LocalEngine.start(
                DiskFiles(Path(self._path)),
                settings=self._storage or StorageSettings(),
                clock=surroundings.clock,
                entropy=surroundings.entropy,
            )
        try:
            self._node = await Node.open(engine, surroundings, self._settings, audited=self._audited)
        except BaseException:
            await engine.close()
            raise
        self._lane = in_process(self._node)
        return self._lane

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lane is not None:
            await self._lane.close()
        if self._node is not None:
            await self._node.close()


def embedded(
    path: str | os.PathLike[str] | None = None,
    *,
    settings: NodeSettings | None = None,
    storage: StorageSettings | None = None,
) -> EmbeddedLane:
    """A broker inside this process: `async with sealane.embedded("data") as lane:`.

    With a path everything acknowledged is durable there, sealed under a key that is made on first use; without one
    it is in memory and ends with the block. One process holds a directory at a time.
    """
    return EmbeddedLane(path, settings=settings, storage=storage)
