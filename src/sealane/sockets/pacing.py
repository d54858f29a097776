"""What is asked of the system for a TCP connection that carries frames.

Many servers have BBR as their congestion control, which sends at the pace that a line is estimated to bear. Between two
processes of one machine there is no line: a timer and a wake-up for each portion of a frame are all that comes of it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import suppress

_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)
"""Where systems let a connection choose: Linux and FreeBSD."""
_NAME_BYTES_MAX = 16
_PACED = b"bbr"
"""How the names of those begin that pace."""
_UNPACED = b"reno"
"""Part of every Linux kernel, and open to every user. Where nothing is lost, it does nothing."""


def prepare(transport: asyncio.BaseTransport) -> None:
    """Short frames leave at once, and what stays within this machine is not paced. Where that cannot be, the connection
    works as the system has it.
    """
    plug: socket.socket | None = transport.get_extra_info("socket")
    if plug is None or plug.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if stays_here(plug.getsockname()[0], plug.getpeername()[0]):
            _do_not_pace(plug)


def stays_here(own: str, peer: str) -> bool:
    """Whether a connection between these addresses is one within this machine."""
    return own == peer or ipaddress.ip_address(peer.partition("%")[0]).is_loopback


def _do_not_pace(plug: socket.socket) -> None:
    if _CONGESTION is not None and plug.getsockopt(socket.IPPROTO_TCP, _CONGESTION, _NAME_BYTES_MAX).startswith(_PACED):
        plug.setsockopt(socket.IPPROTO_TCP, _CONGESTION, _UNPACED)
