"""An encrypted message as CipherMQ has it: one JSON object, whose body only the receiver can read."""

from __future__ import annotations

import binascii
from typing import ClassVar

import msgspec

from sealane.errors import InvalidMessage

MESSAGE_ID_CHARS_MAX = 128
"""Of a message's id: a UUID has 36; others make ids of their own, which are still short."""


class EncryptedMessage(msgspec.Struct, frozen=True):
    """Everything but the id is base64: the session key under the receiver's public key (RSA-OAEP), and what AES-GCM
    made of the body under that session key.
    """

    message_id: str
    enc_session_key: str
    nonce: str
    tag: str
    ciphertext: str

    BINARY: ClassVar[tuple[str, ...]] = ("enc_session_key", "nonce", "tag", "ciphertext")

    def __post_init__(self) -> None:
        check_message_id(self.message_id)

    @classmethod
    def read(cls, text: bytes) -> EncryptedMessage:
        """From its JSON; fields that are not of the protocol are left out. Raises `InvalidMessage` with the field."""
        try:
            found = _DECODER.decode(text)
        except msgspec.ValidationError as error:
            raise InvalidMessage("message", str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidMessage("message", "is not a JSON object") from None
        for name in cls.BINARY:
            found.bytes_of(name)
        return found

    def bytes_of(self, name: str) -> bytes:
        """What a field's base64 stands for. Raises `InvalidMessage` with the field."""
        try:
            return binascii.a2b_base64(getattr(self, name), strict_mode=True)
        except (binascii.Error, ValueError):
            raise InvalidMessage(name, "is not base64") from None

    def written(self) -> bytes:
        """Its JSON, on one line."""
        return msgspec.json.encode(self)


_DECODER = msgspec.json.Decoder(EncryptedMessage)


def check_message_id(message_id: str) -> None:
    """Raise `InvalidMessage` unless it can stand in a line between other words."""
    if not 1 <= len(message_id) <= MESSAGE_ID_CHARS_MAX:
        raise InvalidMessage("message_id", f"has {len(message_id)} characters, 1 to {MESSAGE_ID_CHARS_MAX} are allowed")
    if not message_id.isprintable() or " " in message_id:  # No other space can be printed.
        raise InvalidMessage("message_id", "has a space or a character that cannot be printed")
