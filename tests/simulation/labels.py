"""Payloads that tell which message they belong to, and whether they are still what was sent."""

from __future__ import annotations

import zlib


def payload_of(label: str, size: int = 0) -> bytes:
    """The one payload of this label and size: the label, a filling that depends on it, and a checksum over both."""
    name = label.encode()
    filling = (name * (size // len(name) + 1))[:size]
    body = b"%s %s" % (name, filling)
    return b"%08x %s" % (zlib.crc32(body), body)


def read_payload(payload: bytes) -> tuple[str, bool]:
    """The label that a payload claims, and whether it is intact."""
    body = payload[9:]
    label = body.partition(b" ")[0].decode(errors="replace")
    return label, payload[:9] == b"%08x " % zlib.crc32(body)
