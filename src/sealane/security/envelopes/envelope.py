"""The envelope: one session key, wrapped for each recipient, as bytes that hold for every message of a batch.

    version (1) · scheme (1) · recipients (1) · for each: kind (1) · key id (8) · wrapped key · then a tag (16)

A wrapped key has the length that its kind says. The tag, keyed by the session key, binds the envelope as a whole: who
opens one knows that nobody has changed it since, and that all recipients have the same key. Envelopes of the foreign
scheme have none, since their senders know of none.
"""

from __future__ import annotations

from typing import NamedTuple

from sealane.errors import SealaneError
from sealane.security.envelopes.keys import KEY_ID_BYTES

VERSION = 1
SEALED = 1
"""Scheme: messages are sealed as `sealane.security.envelopes.sealing` does."""
FOREIGN = 2
"""Scheme: messages were sealed by a CipherMQ client; see `foreign`."""
RECIPIENTS_MAX = 32
"""Keys that one batch is sealed for: each message carries what is wrapped for all of them."""
TAG_BYTES = 16

X25519 = 1
RSA_2048, RSA_3072, RSA_4096 = 2, 3, 4
RSA_2048_SHA1, RSA_3072_SHA1, RSA_4096_SHA1 = 5, 6, 7
"""OAEP with SHA-1, as older libraries do by default: read, never written."""
X25519_ALONE = 8
"""The one recipient of an envelope, with X25519: its session key is agreed on, and needs no wrapping. That is most
envelopes, and where batches were put together each message carries one."""

WRAPPED_BYTES = {
    X25519: 32 + 48,
    RSA_2048: 256,
    RSA_3072: 384,
    RSA_4096: 512,
    RSA_2048_SHA1: 256,
    RSA_3072_SHA1: 384,
    RSA_4096_SHA1: 512,
    X25519_ALONE: 32,
}
"""By kind. Of X25519 it is the sender's public key, and unless alone the session key under AES-256-GCM."""

_HEAD_BYTES = 3
_ENTRY_HEAD_BYTES = 1 + KEY_ID_BYTES
ENVELOPE_BYTES_MAX = _HEAD_BYTES + RECIPIENTS_MAX * (_ENTRY_HEAD_BYTES + 512) + TAG_BYTES
"""An envelope for as many RSA keys of 4,096 bits as there may be."""
ANY_KEY = bytes(KEY_ID_BYTES)
"""The key id of a foreign sender's wrapped key, who does not tell whose it is."""


class InvalidEnvelope(SealaneError):
    """Bytes that claim to be an envelope are none; the message says what is wrong with them."""


class Wrapped(NamedTuple):
    """A session key that only the holder of one private key can have."""

    kind: int
    key_id: bytes
    sealed: bytes


class Envelope(NamedTuple):
    scheme: int
    wrapped: tuple[Wrapped, ...]
    tag: bytes
    body: bytes
    """All that is before the tag, which is about it."""


def envelope_bytes(kinds: list[int]) -> int:
    """The length of an envelope with wrapped keys of these kinds."""
    return _HEAD_BYTES + sum(_ENTRY_HEAD_BYTES + WRAPPED_BYTES[kind] for kind in kinds) + TAG_BYTES


def write_body(scheme: int, wrapped: list[Wrapped]) -> bytes:
    """All of an envelope but its tag."""
    assert 1 <= len(wrapped) <= RECIPIENTS_MAX, "callers refuse it before, with words for whoever chose them"
    entries = (bytes([kind]) + key_id + sealed for kind, key_id, sealed in wrapped)
    return bytes([VERSION, scheme, len(wrapped)]) + b"".join(entries)


def read_envelope(data: bytes) -> Envelope:
    """The envelope in these bytes, which anybody may have written. Raises `InvalidEnvelope`."""
    if len(data) > ENVELOPE_BYTES_MAX:
        raise InvalidEnvelope(f"it has {len(data):,} bytes, at most {ENVELOPE_BYTES_MAX:,} are possible")
    if len(data) < _HEAD_BYTES:
        raise InvalidEnvelope("it is cut off")
    version, scheme, recipients = data[:_HEAD_BYTES]
    if version != VERSION:
        raise InvalidEnvelope(f"its version is {version}, this Sealane reads {VERSION}")
    if scheme not in (SEALED, FOREIGN):
        raise InvalidEnvelope(f"its scheme is {scheme}, which this Sealane does not know")
    if not 1 <= recipients <= RECIPIENTS_MAX:
        raise InvalidEnvelope(f"it is for {recipients} keys, which cannot be: 1 to {RECIPIENTS_MAX}")
    at, wrapped = _HEAD_BYTES, []
    for _ in range(recipients):
        entry = _read_entry(data, at)
        wrapped.append(entry)
        at += _ENTRY_HEAD_BYTES + len(entry.sealed)
    if len(data) - at != (TAG_BYTES if scheme == SEALED else 0):
        raise InvalidEnvelope("it does not end where it should")
    return Envelope(scheme, tuple(wrapped), data[at:], data[:at])


def _read_entry(data: bytes, at: int) -> Wrapped:
    start = at + _ENTRY_HEAD_BYTES
    if len(data) < start:
        raise InvalidEnvelope("it is cut off")
    length = WRAPPED_BYTES.get(data[at])
    if length is None:
        raise InvalidEnvelope(f"a key in it is wrapped in way {data[at]}, which this Sealane does not know")
    if len(data) < start + length:
        raise InvalidEnvelope("it is cut off")
    return Wrapped(data[at], data[at + 1 : start], data[start : start + length])
