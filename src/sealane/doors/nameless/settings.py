"""What every door of this kind can be told."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.errors import InvalidArgument

MiB = 1 << 20


@dataclass(frozen=True, slots=True)
class NamelessDoorSettings:
    """`doors.<name>.*` in the configuration; each door has a port and settings of its own beside these."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    """0 picks a free one."""
    tls: bool = False
    """Speak TLS with the node's own certificate, as the other doors do. A client that shows a certificate is who that
    says, and not the `principal`."""
    plain_text_beyond_loopback: bool = False
    """Listen without TLS where other machines can reach it: everyone on the way can read and change what is said."""
    principal: str | None = None
    """The account that everyone is who shows no certificate: what it is granted, they may do. With `--insecure`
    everyone is the admin, as at every door."""
    domain: str | None = None
    """Where the names are that clients say; none: in the principal's own domain."""
    connections_max: int = 1_000
    """Each costs a descriptor and a few kilobytes; one more is told that there are too many."""
    in_flight_bytes_max: int = 32 * MiB
    """Published bytes of one connection that wait for the disk: beyond it the node stops reading from that client
    until it has caught up. Four full batches."""
    in_flight_bytes_total_max: int = 256 * MiB
    """The same over all connections: bounds the node's memory when the disk is slow and clients are many."""
    receive_seconds_max: float = 30.0
    """From the first byte of a frame or line to its last: whoever takes longer is cut off."""
    send_seconds_max: float = 60.0
    """A client that has not taken all that waits for it for so long is cut off, and what it held goes to others."""

    def check(self, door: str) -> None:
        """Raise `InvalidArgument` with the setting at fault."""
        for name in ("connections_max", "in_flight_bytes_max", "in_flight_bytes_total_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"doors.{door}.{name}", f"is {getattr(self, name):,}, at least 1")
        for name in ("receive_seconds_max", "send_seconds_max"):
            if getattr(self, name) <= 0:
                raise InvalidArgument(f"doors.{door}.{name}", "must be more than 0")
