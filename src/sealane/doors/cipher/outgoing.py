"""Messages as consumers of this door are sent them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from sealane.errors import InvalidMessage
from sealane.node.deliveries import Delivery
from sealane.node.message_json import uuid_text
from sealane.wire.cipher import replies
from sealane.wire.cipher.message import EncryptedMessage


class Outgoing(NamedTuple):
    message_id: str
    offset: int
    line: bytes


def outgoing(delivery: Delivery) -> Iterator[Outgoing]:
    """All messages of a delivery, in their order."""
    for part in delivery.parts:
        offsets = part.offsets if isinstance(part.offsets, range) else part.offsets.tolist()
        for offset, identity, payload in zip(offsets, part.batch.ids(), part.batch.payloads(), strict=True):
            message_id, text = _told(identity, payload)
            yield Outgoing(message_id, offset, replies.message(message_id, text))


def _told(identity: bytes, payload: bytes) -> tuple[str, bytes]:
    """A message's id and its JSON. What is no message of this protocol came by another door: it is wrapped in one."""
    try:
        message_id = EncryptedMessage.read(payload).message_id
    except InvalidMessage:
        message_id = uuid_text(identity)
        wrapped = {"message_id": message_id, "payload_base64": base64.b64encode(payload).decode()}
        return message_id, msgspec.json.encode(wrapped)
    if b"\n" in payload or b"\r" in payload:
        payload = msgspec.json.format(payload, indent=-1)  # By another door it may have come on several lines.
    return message_id, payload
