"""A node behind its grpc and native doors in the test's own process, and clients of the grpc door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from sealane.doors.grpc.door import GrpcDoor
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.doors.grpc.swarmmq_pb2_grpc import SwarmMQStub
from sealane.engine import Engine
from sealane.node import Node, NodeSettings
from sealane.node.gate import Gate, everyone_is_admin
from sealane.security.ca.issued import Issued
from sealane.security.introductions import Authenticate
from tests.native_node import NativeNode, native_node
from tests.secure_node import SecureNode, secure_node

NODE_ID = "node-1"


@dataclass
class GrpcNode:
    native: NativeNode
    door: GrpcDoor
    problems: list[str] = field(default_factory=list)
    """Why it does not serve, as it tells those who ask for its health."""
    crashes: list[BaseException] = field(default_factory=list)
    """What nobody expected: a test fails at its end if something is left here."""

    @property
    def node(self) -> Node:
        return self.native.node

    @property
    def address(self) -> str:
        return self.door.address


@asynccontextmanager
async def grpc_node(
    path: Path | None = None,
    *,
    engine: Engine | None = None,
    settings: NodeSettings | None = None,
    door: GrpcDoorSettings | None = None,
    authenticate: Authenticate = everyone_is_admin,
) -> AsyncIterator[GrpcNode]:
    """In memory, in a directory, or on this engine; in plain text, on free ports of the loopback."""
    async with native_node(path, engine=engine, settings=settings, authenticate=authenticate) as native:
        problems: list[str] = []
        crashes: list[BaseException] = []
        native.node.supervisor.on_crash = lambda task, error: crashes.append(error)
        grpc_door = GrpcDoor(
            Gate(native.node, authenticate),
            door or GrpcDoorSettings(port=0),
            node_id=NODE_ID,
            problems=lambda: problems,
        )
        try:
            await grpc_door.start()
            yield GrpcNode(native, grpc_door, problems, crashes)
        finally:
            await grpc_door.close()
        assert crashes == []


@dataclass
class SecureGrpcNode:
    secure: SecureNode
    door: GrpcDoor

    @property
    def node(self) -> Node:
        return self.secure.node

    @property
    def address(self) -> str:
        """By a name that is in the node's certificate."""
        return f"localhost:{self.door.address.rpartition(':')[2]}"

    def credentials(self, shown: Issued | None = None) -> Any:
        """A channel's: it trusts the node's authority, and shows this certificate."""
        trusted = self.node.identity.authorities.trusted().encode()
        if shown is None:
            return grpc.ssl_channel_credentials(trusted)
        assert shown.key is not None
        return grpc.ssl_channel_credentials(trusted, shown.key.encode(), shown.certificate.encode())


@asynccontextmanager
async def secure_grpc_node(directory: Path, door: GrpcDoorSettings | None = None) -> AsyncIterator[SecureGrpcNode]:
    """With TLS and authentication."""
    async with secure_node(directory) as secure:
        grpc_door = GrpcDoor(
            Gate(secure.node, secure.node.identity.authentication.authenticate),
            door or GrpcDoorSettings(port=0),
            node_id=NODE_ID,
            problems=list,
            tls=secure.tls,
        )
        try:
            await grpc_door.start()
            yield SecureGrpcNode(secure, grpc_door)
        finally:
            await grpc_door.close()


@asynccontextmanager
async def client(address: str, credentials: Any = None, **options: Any) -> AsyncIterator[Any]:
    """A stub of the service; it speaks TLS with these credentials of a channel. `options` are the channel's."""
    async with channel(address, credentials, **options) as opened:
        yield SwarmMQStub(opened)


def channel(address: str, credentials: Any = None, **options: Any) -> Any:
    # Channels to one address share a connection unless they are told not to.
    given = [("grpc.use_local_subchannel_pool", 1), *((f"grpc.{name}", value) for name, value in options.items())]
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=given)
    return grpc.aio.secure_channel(address, credentials, options=given)
