"""Where a door listens: bound here, the same way for every door, so that what goes wrong names the setting."""

from __future__ import annotations

import errno
import ipaddress
import socket

from sealane.errors import InvalidArgument, PortTaken

BACKLOG = 2_048
"""Connections that may wait to be accepted: a whole fleet that reconnects at once."""


def listen(door: str, host: str, port: int) -> socket.socket:
    """A listening socket at the first address of the host; port 0 takes a free one.

    Raises `PortTaken`, or `InvalidArgument` with the setting at fault.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InvalidArgument(
            f"doors.{door}.host", f"{host!r} is no address of this machine: {error.strerror}"
        ) from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(written(host, port), f"doors.{door}.port") from None
        setting = f"doors.{door}.port" if error.errno == errno.EACCES else f"doors.{door}.host"
        raise InvalidArgument(setting, f"cannot listen on {written(host, port)}: {error.strerror}") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """`host:port` where it listens."""
    host, port = listener.getsockname()[:2]
    return written(host, port)


def written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_wildcard(host: str) -> bool:
    """Whether it means every address of this machine, so that nobody can be sent there."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def reachable(address: str) -> str:
    """Where on this machine whoever listens at `host:port` can be reached."""
    host, _, port = address.rpartition(":")
    bare = host.strip("[]")
    if not is_wildcard(bare):
        return address
    return written("::1" if ":" in bare else "127.0.0.1", int(port))
