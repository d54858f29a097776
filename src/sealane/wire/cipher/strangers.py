"""Those who speak another protocol, known by how they begin: they are told so at once.

A web page can make a browser send a request to a port of its user's machine, and choose lines of its body. So whoever
speaks HTTP is never listened to any further: the next lines could be commands.
"""

from __future__ import annotations

_TLS = b"\x16\x03"
_AMQP = b"AMQP"
_HTTP = tuple(
    b"%b " % word
    for word in (b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"CONNECT", b"TRACE", b"PRI")
)


def foreign_start(data: bytes) -> str | None:
    """What someone speaks whose first bytes are these, if it is known and has no lines; None for all others."""
    if data.startswith(_TLS):
        return "TLS"
    return "AMQP" if data.startswith(_AMQP) else None


def is_http(line: bytes) -> bool:
    """Whether a line begins a request."""
    return line.startswith(_HTTP)
