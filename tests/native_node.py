"""A node behind its native door in the test's own process, for tests of what goes over the wire."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sealane.doors.native.door import NativeDoor
from sealane.doors.native.settings import NativeDoorSettings
from sealane.doors.tls import NodeTls
from sealane.engine import Engine
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.node.surroundings import of_this_machine
from sealane.security.introductions import Authenticate


class NativeNode:
    """`url` is for `sealane.connect`."""

    def __init__(self, node: Node, door: NativeDoor, scheme: str = "sealane") -> None:
        self.node = node
        self.door = door
        self._scheme = scheme

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.door.address}"

    @property
    def port(self) -> int:
        return int(self.door.address.rpartition(":")[2])


@asynccontextmanager
async def native_node(
    path: Path | None = None,
    *,
    engine: Engine | None = None,
    settings: NodeSettings | None = None,
    door: NativeDoorSettings | None = None,
    authenticate: Authenticate | None = everyone_is_admin,
    tls: NodeTls | None = None,
) -> AsyncIterator[NativeNode]:
    """In memory, in a directory, or on this engine; on a free port of the loopback unless `door` says otherwise.

    `authenticate` None: as the node itself does it.
    """
    surroundings = of_this_machine()
    if engine is None and path is None:
        engine = MemoryEngine(surroundings.clock)
    elif engine is None and path is not None:
        engine = await LocalEngine.start(
            DiskFiles(path), settings=StorageSettings(), clock=surroundings.clock, entropy=surroundings.entropy
        )
    assert engine is not None
    node = await Node.open(engine, surroundings, settings)
    native = NativeDoor(
        Gate(node, authenticate or node.identity.authentication.authenticate),
        door or NativeDoorSettings(port=0),
        node_id=os.urandom(8).hex(),
        software="sealane-tests",
        tls=tls,
    )
    try:
        await native.start()
        yield NativeNode(node, native, "sealanes" if tls else "sealane")
    finally:
        await native.close()
        await node.close()
