"""What a client shows before it is let in, and the first words that it hears."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sealane.message.codec import FRAMING_BYTES_MAX
from sealane.node.session import Session
from sealane.wire.errors import ProtocolError
from sealane.wire.frames import ANSWER_HEADER_BYTES_MAX
from sealane.wire.messages import PROTOCOL_VERSION, Hello, LimitsOffer, Welcome

if TYPE_CHECKING:
    from sealane.doors.native.door import NativeDoor

HEARTBEAT_SECONDS_MIN = 1.0
"""No client gets shorter heartbeats: time is looked at once a second."""


def check_version(hello: Hello) -> None:
    """Raises `ProtocolError` if there is no version that both speak."""
    if PROTOCOL_VERSION not in hello.versions:
        problem = f"this node speaks version {PROTOCOL_VERSION} of the protocol, not {hello.versions[:10]}"
        raise ProtocolError("no-common-version", problem)


def certificate_of(transport: asyncio.BaseTransport | None) -> bytes | None:
    """The client's certificate (DER), if it has shown one."""
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return certificate


def welcome(door: NativeDoor, hello: Hello, session: Session, nonce: bytes) -> Welcome:
    """Who the client is to this node, and within which limits it is served."""
    wanted = hello.heartbeat_seconds
    longest = door.settings.heartbeat_seconds
    return Welcome(
        PROTOCOL_VERSION,
        door.software,
        door.node_id,
        session.principal.name,
        session.principal.domain,
        [],
        LimitsOffer.of(session.limits),
        frame_bytes_max=session.limits.batch_bytes_max + FRAMING_BYTES_MAX + ANSWER_HEADER_BYTES_MAX,
        heartbeat_seconds=max(HEARTBEAT_SECONDS_MIN, wanted) if wanted < longest else longest,
        nonce=nonce,
    )
