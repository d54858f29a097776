"""Messages as their senders give them: looked into, and kept as they came."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID, uuid5

import msgspec

from sealane.errors import InvalidMessage
from sealane.wire.cipher.message import EncryptedMessage

NAMES = UUID("73f436db-66d2-5666-9c1a-349ad7480e15")
"""The namespace of ids that are no UUIDs: each has its UUIDv5 in it, so that a repeated one is known again."""

UUID_CHARS = 36


class Given(NamedTuple):
    """A message that is as it should be."""

    message_id: str
    text: bytes
    """Its JSON, as it came."""

    @property
    def identity(self) -> bytes:
        """Under which it is stored once."""
        return identity_of(self.message_id)


class _Outline(msgspec.Struct):
    """What every message of a batch has: read first, so that a list of a million numbers ends at the first of them."""

    message_id: str
    enc_session_key: str
    nonce: str
    tag: str
    ciphertext: str


_outlines = msgspec.json.Decoder(list[_Outline])
_texts = msgspec.json.Decoder(list[msgspec.Raw])


def given(text: bytes) -> Given:
    """One message. Raises `InvalidMessage` with the field."""
    return Given(EncryptedMessage.read(text).message_id, text)


def given_batch(text: bytes) -> list[Given]:
    """All messages of a JSON list. Raises `InvalidMessage` with the first that is not as it should be."""
    try:
        _outlines.decode(text)
        texts = [bytes(each) for each in _texts.decode(text)]
    except msgspec.ValidationError as error:
        raise InvalidMessage("batch", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidMessage("batch", "is not a JSON list of messages") from None
    if not texts:
        raise InvalidMessage("batch", "has no messages")
    messages = []
    for index, each in enumerate(texts):
        try:
            messages.append(given(each))
        except InvalidMessage as error:
            raise InvalidMessage(f"batch[{index}].{error.field}", error.problem) from None
    return messages


def identity_of(message_id: str) -> bytes:
    """The UUID that it is, as it is usually written; else the one that stands for it among `NAMES`."""
    if len(message_id) == UUID_CHARS:
        try:
            return UUID(message_id).bytes
        except ValueError:
            pass
    return uuid5(NAMES, message_id).bytes
