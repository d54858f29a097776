"""A node with TLS and authentication behind its doors, in the test's own process and in memory."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.doors.native.door import NativeDoor
from sealane.doors.native.settings import NativeDoorSettings
from sealane.doors.tls import NodeTls
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate
from sealane.node.surroundings import Surroundings, wall_clock_us
from sealane.security.ca.issued import Issued
from sealane.server.identity_files import IdentityFiles
from sealane.server.own_identity import OwnIdentity
from tests.integration.native.peer import Peer


@dataclass
class SecureNode:
    node: Node
    native: NativeDoor
    http: HttpDoor
    tls: NodeTls
    own: OwnIdentity
    directory: Path

    async def issue(self, name: str, **wish: Any) -> Issued:
        return await self.node.identity.authorities.issue(name, **wish)

    def context(self, shown: Issued | None = None, **options: Any) -> ssl.SSLContext:
        """A client's: it trusts the node's authority, and shows this certificate."""
        return client_context(self.directory, self.node.identity.authorities.trusted(), shown, **options)

    async def enter(self, shown: Issued | None = None, **hello: Any) -> Peer:
        return await Peer.enter(self.native.address, tls=self.context(shown), **hello)


def client_context(directory: Path, trusted: str, shown: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=trusted)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if shown is not None:
        assert shown.key is not None
        chain = directory / f"{shown.serial}.pem"
        chain.touch(0o600)
        chain.write_text(shown.certificate + shown.key)
        context.load_cert_chain(chain)
    return context


@asynccontextmanager
async def secure_node(
    directory: Path,
    *,
    clock: Callable[[], int] = wall_clock_us,
    native: NativeDoorSettings | None = None,
    http: HttpDoorSettings | None = None,
    settings: NodeSettings | None = None,
) -> AsyncIterator[SecureNode]:
    node = await Node.open(MemoryEngine(clock), Surroundings(clock, os.urandom), settings)
    files = IdentityFiles(directory / "data")
    files.make_private()
    own = OwnIdentity(node.identity, files, ())
    await own.ensure()
    tls = own.tls
    gate = Gate(node, node.identity.authentication.authenticate)
    native = native or NativeDoorSettings(port=0)
    native_door = NativeDoor(gate, native, node_id="node-1", software="sealane/test", tls=tls)
    watched = Watched(lambda: True, list, lambda: (b"sealane_up 1\n", "text/plain"))
    http_door = HttpDoor(http or HttpDoorSettings(port=0), watched, tls=tls)
    try:
        await native_door.start()
        await http_door.start()
        http_door.let_in(gate)
        yield SecureNode(node, native_door, http_door, tls, own, directory)
    finally:
        await http_door.close()
        await native_door.close()
        await node.close()
