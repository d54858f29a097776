"""One node with its doors, from opening its data directory to closing it."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sealane._version import __version__
from sealane.doors.door import Door
from sealane.doors.http.door import HttpDoor
from sealane.doors.http.watched import Watched
from sealane.doors.listening import reachable
from sealane.doors.native.door import NativeDoor
from sealane.doors.tls import NodeTls
from sealane.engine.local import DiskFiles, LocalEngine
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.node import Node
from sealane.node.gate import Gate, everyone_is_admin
from sealane.node.status import health
from sealane.node.surroundings import of_this_machine
from sealane.security.introductions import Authenticate
from sealane.server.checks import check, enabled_doors
from sealane.server.identity_files import IdentityFiles
from sealane.server.metrics import Metrics
from sealane.server.notices import NODE_FILE, NodeNotice, Opened, notice, post, take_down
from sealane.server.own_identity import OwnIdentity, names_of
from sealane.server.settings import ServerSettings

if TYPE_CHECKING:
    from sealane.push.pusher import Pusher

log = get_log("sealane.server")

GRPC_ENVIRONMENT = {"GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "0"}
"""gRPC reads it when it is first imported. It has a log of its own on standard error, which tells of clients that come
and go or do what they should not, and of each child process that is started: strangers could fill it."""
HURRIED_SECONDS = 0.5
"""What a door gets to drain in when those before it have taken all of the time."""


class NodeFailed(SealaneError):
    """The node stopped by itself, since going on would have been wrong."""


class Server:
    """Runs once. All of it belongs to one event loop."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        ready_file: Path | None = None,
        on_ready: Callable[[Opened], None] | None = None,
    ) -> None:
        """`on_ready` is told once all doors answer. Raises `InvalidSettings`."""
        check(settings)
        self._settings = settings
        self._ready_file = ready_file
        self._on_ready = on_ready
        self._state = "starting"
        self._stop = asyncio.Event()
        self._node: Node | None = None
        self._metrics: Metrics | None = None
        self._doors: list[Door] = []
        self._pusher: Pusher | None = None
        """None where webhooks are off."""
        self._identity_files = IdentityFiles(settings.directory)
        self._own: OwnIdentity | None = None
        """None of an insecure node."""

    def stop(self) -> None:
        """Let the doors drain, close everything, and let `run` return. Before it is ready: as soon as it is."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until `stop` is called. Raises what keeps it from starting, or `NodeFailed`."""
        async with AsyncExitStack() as stack:
            await self._start(stack)
            if not self._stop.is_set():
                self._announce(stack)
                await self._serve()
            await self._drain()
        log.info("stopped", data=self._settings.data)

    # --- starting -----------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        log.info("starting", version=__version__, pid=os.getpid(), data=self._settings.data)
        files = DiskFiles(self._settings.directory)
        # Before any port is tried: a second process is to hear who holds the directory, not which port is taken.
        files.acquire()
        stack.callback(files.release)
        tls = None
        if not self._settings.insecure:
            self._identity_files.make_private()
            tls = self._identity_files.tls()
        # The door for those who watch comes first, so that they see a long recovery for what it is. At the very first
        # start it has no certificate yet, and comes when there is one.
        http = await self._open_http(tls, stack) if self._settings.insecure or tls is not None else None
        self._node = await self._open_node(files, stack)
        self._metrics = Metrics(self._node)
        authenticate: Authenticate = everyone_is_admin
        if not self._settings.insecure:
            tls = await self._identify(self._node, tls, stack)
            http = http or await self._open_http(tls, stack)
            authenticate = self._node.identity.authentication.authenticate
        gate = Gate(self._node, authenticate)
        if http is not None:
            http.let_in(gate)
        for door in self._doors_of(gate, tls):
            await self._open(door, stack)
        if self._node.webhooks.hosts:
            self._start_pushing(self._node, stack)
        self._node.measures.connections.update({door.name: _count(door) for door in self._doors})
        # What was loaded stays: the garbage collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)

    async def _open_node(self, files: DiskFiles, stack: AsyncExitStack) -> Node:
        surroundings = of_this_machine()
        engine = await LocalEngine.start(
            files, settings=self._settings.storage, clock=surroundings.clock, entropy=surroundings.entropy
        )
        try:
            node = await Node.open(engine, surroundings, self._settings.node, audited=True)
        except BaseException:
            await engine.close()
            raise
        stack.push_async_callback(node.close)
        return node

    async def _open_http(self, tls: NodeTls | None, stack: AsyncExitStack) -> HttpDoor | None:
        settings = self._settings.doors.http
        if not settings.enabled:
            return None
        door = HttpDoor(settings, Watched(self._live, self._problems, self._render), tls=tls)
        await self._open(door, stack)
        return door

    async def _identify(self, node: Node, tls: NodeTls | None, stack: AsyncExitStack) -> NodeTls:
        """Let the node have an identity of its own, and keep it valid from here on."""
        doors = enabled_doors(self._settings.doors).values()
        names = names_of((door.host for door in doors), node.identity.settings.certificates.names)
        own = self._own = OwnIdentity(node.identity, self._identity_files, names, tls)
        await own.ensure()
        keeping = node.supervisor.keep("own identity", own.keep)
        stack.callback(keeping.cancel)
        return own.tls

    def _doors_of(self, gate: Gate, tls: NodeTls | None) -> list[Door]:
        """The doors that clients come in by, in the order in which they open."""
        doors = self._settings.doors
        found: list[Door] = []
        # Another one with each start: clients learn from it that what they held before is over.
        node_id = os.urandom(8).hex()
        if doors.native.enabled:
            found.append(NativeDoor(gate, doors.native, node_id=node_id, software=f"sealane/{__version__}", tls=tls))
        if doors.grpc.enabled:
            for name, value in GRPC_ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            from sealane.doors.grpc.door import GrpcDoor  # A node without it has no need of gRPC.

            found.append(GrpcDoor(gate, doors.grpc, node_id=node_id, problems=self._problems, tls=tls))
        if doors.frames.enabled:
            from sealane.doors.frames.door import FramesDoor

            found.append(FramesDoor(gate, doors.frames, tls=tls if doors.frames.tls else None))
        if doors.cipher.enabled:
            from sealane.doors.cipher.door import CipherDoor

            found.append(CipherDoor(gate, doors.cipher, tls=tls if doors.cipher.tls else None))
        return found

    async def _open(self, door: Door, stack: AsyncExitStack) -> None:
        stack.push_async_callback(door.close)
        await door.start()
        self._doors.append(door)

    def _start_pushing(self, node: Node, stack: AsyncExitStack) -> None:
        from sealane.push.pusher import Pusher  # A node without webhooks has no need of an HTTP client.

        self._pusher = Pusher(node, plain_http=self._settings.insecure)
        stack.push_async_callback(self._pusher.close)
        self._pusher.start()

    def _announce(self, stack: AsyncExitStack) -> None:
        order = list(enabled_doors(self._settings.doors))
        doors = sorted(self._doors, key=lambda door: order.index(door.name))
        addresses = {door.name: reachable(door.address) for door in doors}
        self._state = "serving"
        if self._own is not None and "native" in addresses:
            self._own.announce(f"sealanes://{addresses['native']}")
        said = notice(addresses)
        own = self._settings.directory / NODE_FILE
        post(own, NodeNotice(said.pid, said.doors, insecure=self._settings.insecure))
        stack.callback(take_down, own)
        if self._ready_file is not None:
            post(self._ready_file, said)
            stack.callback(take_down, self._ready_file)
        log.info("ready", **addresses)
        if self._on_ready is not None:
            self._on_ready(self._opened(addresses))

    def _opened(self, addresses: dict[str, str]) -> Opened:
        if self._own is None:
            return Opened(addresses)
        return Opened(addresses, self._own.fingerprint, first_start=self._own.is_new)

    # --- serving ------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        assert self._node is not None
        stopped = asyncio.create_task(self._stop.wait())
        failed = asyncio.create_task(self._node.supervisor.failed())
        try:
            await asyncio.wait({stopped, failed}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                error = failed.result()
                # What the error says may be anything, also what a message holds.
                raise NodeFailed(f"the node stopped by itself: {type(error).__name__}; its log has more") from error
        finally:
            stopped.cancel()
            failed.cancel()

    def _problems(self) -> list[str]:
        if self._state != "serving" or self._node is None:
            return [f"the node is {self._state}"]
        state = health(self._node)
        return [] if state.ready else state.problems

    def _live(self) -> bool:
        return self._node is None or health(self._node).live

    def _render(self) -> tuple[bytes, str]:
        """Nothing, as long as there is nothing to measure."""
        return self._metrics.render() if self._metrics is not None else (b"", "text/plain")

    # --- stopping -----------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Whoever watches is told to the end: their door opened first, and drains last."""
        self._state = "draining"
        seconds = self._settings.drain_seconds
        log.info("stopping", drain_seconds=seconds)
        stop = asyncio.get_running_loop().time() + seconds
        if self._pusher is not None:
            self._pusher.stop()  # Its requests come to their end while clients do.
        for door in reversed(self._doors):
            await door.drain(max(HURRIED_SECONDS, stop - asyncio.get_running_loop().time()))
        if self._pusher is not None:
            await self._pusher.drain(max(HURRIED_SECONDS, stop - asyncio.get_running_loop().time()))


def _count(door: Door) -> Callable[[], int]:
    return lambda: door.connections
