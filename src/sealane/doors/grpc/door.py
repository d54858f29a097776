"""The grpc door: gRPC on the node's own event loop, behind an entry of ours."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from sealane.doors.grpc.calls import Calls
from sealane.doors.grpc.entry import DOOR, Entry
from sealane.doors.grpc.health import Health
from sealane.doors.grpc.room import Room
from sealane.doors.grpc.service import handlers
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.doors.grpc.stays import Stays
from sealane.doors.tls import NodeTls
from sealane.errors import Closed
from sealane.log import get_log
from sealane.node.gate import Gate

log = get_log("sealane.doors.grpc")

SWEEP_SECONDS = 1.0
"""How often it is looked whether a caller's credential is over, and whether the node still serves."""
PREFACE_SECONDS = 10.0
"""How long a connection may take to say that it speaks HTTP/2."""
CLOSE_SECONDS_MAX = 5.0
"""At `close`, what is under way may take so long to clear up behind it."""
_ABOUT_TO_STOP = "the node is about to stop; ask another one, or this one later"


class GrpcDoor:
    """Implements `Door`."""

    name = DOOR

    def __init__(
        self,
        gate: Gate,
        settings: GrpcDoorSettings,
        *,
        node_id: str,
        problems: Callable[[], Sequence[str]],
        tls: NodeTls | None = None,
    ) -> None:
        """`problems` says why the node does not serve. Without `tls` it speaks plain text."""
        self._gate = gate
        self._settings = settings
        self._entry = Entry(gate, connections_max=settings.connections_max, tls=tls)
        self._stays = Stays(gate.entrances)
        self._calls = Calls(gate, self._entry, self._stays)
        self._room = Room(settings.in_flight_bytes_total_max)
        self._health = Health(node_id, problems)
        self._node_id = node_id
        self._directory: Path | None = None
        self._server: Any = None
        self._address = ""
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        assert self._address, "the door has not been started"
        return self._address

    @property
    def connections(self) -> int:
        return len(self._entry)

    @property
    def in_flight_bytes(self) -> int:
        """What clients have published and not been answered yet."""
        return self._room.taken_bytes

    async def start(self) -> None:
        server = grpc.aio.server(options=_options(self._settings), maximum_concurrent_rpcs=self._settings.calls_max)
        server.add_generic_rpc_handlers(handlers(self._calls, self._room, self._settings, self._node_id, self._health))
        # Nobody but this process's owner can look into it.
        self._directory = Path(tempfile.mkdtemp(prefix="sealane-grpc-"))
        inner = self._directory / "inner"
        server.add_insecure_port(f"unix:{inner}")
        await server.start()
        self._server = server
        self._address = await self._entry.open(self._settings.host, self._settings.port, inner)
        self._sweep()
        log.info("the grpc door is open", address=self._address)

    def _sweep(self) -> None:
        self._gate.show_out()
        self._health.tick()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    async def drain(self, seconds: float) -> None:
        """Calls that have begun are answered; streams, and calls that come now, are told that the node is about to
        stop. gRPC would leave those without an answer until it is over.
        """
        self._entry.shut()
        self._stays.end_all(Closed(_ABOUT_TO_STOP))
        await self._calls.finished(seconds)

    async def close(self) -> None:
        server, self._server = self._server, None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._entry.shut()
        if server is not None:
            # Without grace gRPC aborts at once whatever it does not take for finished, which may be a call whose last
            # word has yet to leave. Calls that go on after they were told to end have had their time.
            await server.stop(None if self._calls.running else CLOSE_SECONDS_MAX)
            await self._calls.finished(CLOSE_SECONDS_MAX)
        await self._entry.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _options(settings: GrpcDoorSettings) -> list[tuple[str, int]]:
    keepalive_ms = round(settings.keepalive_seconds * 1e3)
    return [
        ("grpc.max_concurrent_streams", settings.calls_per_connection_max),
        ("grpc.max_receive_message_length", settings.request_bytes_max),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", settings.metadata_bytes_max),
        ("grpc.absolute_max_metadata_size", settings.metadata_bytes_max),
        # Nothing compressed is taken: a few kilobytes could become gigabytes.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", keepalive_ms),
        ("grpc.max_connection_idle_ms", round(settings.idle_seconds * 1e3)),
        ("grpc.server_handshake_timeout_ms", round(PREFACE_SECONDS * 1e3)),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive_ms // 2),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
