"""What the grpc door can be told."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.errors import InvalidArgument

KiB = 1 << 10
MiB = 1 << 20


@dataclass(frozen=True, slots=True)
class GrpcDoorSettings:
    """`doors.grpc.*` in the configuration."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = 9001
    """0 picks a free one."""
    connections_max: int = 1_000
    """Each costs two descriptors, and some tens of kilobytes inside gRPC; one more is closed at once."""
    calls_max: int = 4_096
    """Calls and streams under way at a time, of all connections: one more is refused before it is read."""
    calls_per_connection_max: int = 100
    """The same of one connection: a client that wants more waits until one of them is done."""
    request_bytes_max: int = 16 * MiB
    """One request, or one of a stream: a full batch of 8 MiB fits, with what Arrow and gRPC put around it."""
    metadata_bytes_max: int = 16 * KiB
    """What a call says of itself, its credential too: all that a stranger can make the node keep of it."""
    in_flight_bytes_max: int = 32 * MiB
    """What one stream may have published that waits for the disk: beyond it, it is not read from. Four full batches."""
    in_flight_bytes_total_max: int = 256 * MiB
    """The same of all calls together: bounds the node's memory when the disk is slow and clients are many."""
    keepalive_seconds: float = 30.0
    """After so much silence a client is asked whether it is there; no answer for as long again, and it is gone."""
    idle_seconds: float = 300.0
    """A connection without a call for so long is closed; clients open it again by themselves."""

    def __post_init__(self) -> None:
        for name in (
            "connections_max",
            "calls_max",
            "calls_per_connection_max",
            "request_bytes_max",
            "metadata_bytes_max",
            "in_flight_bytes_max",
            "in_flight_bytes_total_max",
        ):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"doors.grpc.{name}", f"is {getattr(self, name):,}, at least 1")
        for name in ("keepalive_seconds", "idle_seconds"):
            if getattr(self, name) <= 0:
                raise InvalidArgument(f"doors.grpc.{name}", "must be more than 0")
