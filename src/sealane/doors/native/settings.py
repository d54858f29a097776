"""What the native door can be told."""

from __future__ import annotations

from dataclasses import dataclass

MiB = 1 << 20


@dataclass(frozen=True, slots=True)
class NativeDoorSettings:
    """`doors.native.*` in the configuration."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int = 7070
    """0 picks a free one."""
    connections_max: int = 10_000
    """Each idle connection costs a few kilobytes and a descriptor; the next one is told that there are too many."""
    heartbeat_seconds: float = 15.0
    """The longest silence on a connection; a peer is taken for gone after three times as long."""
    in_flight_bytes_max: int = 32 * MiB
    """Published bytes of one connection that wait for the disk: beyond it the node stops reading from that client
    until it has caught up. Four full batches."""
    in_flight_bytes_total_max: int = 256 * MiB
    """The same over all connections: bounds the node's memory when the disk is slow and clients are many."""
    unsent_bytes_max: int = 8 * MiB
    """What one connection may have waiting to be sent before its consumers are given no more."""
