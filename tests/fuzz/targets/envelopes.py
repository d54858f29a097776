"""Envelopes of what is sealed end to end, and the payloads under them: the sender may be anybody."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sealane.message import Limits, Stamp, from_payloads
from sealane.security.envelopes import OpeningKeys, PrivateKey, Recipients, open_columns, seal_batch
from sealane.security.envelopes.envelope import InvalidEnvelope, read_envelope
from sealane.security.envelopes.foreign import foreign_envelope, foreign_payload
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_msgpack

_KEY = PrivateKey(X25519PrivateKey.from_private_bytes(bytes(range(32))))
_OTHER = PrivateKey(X25519PrivateKey.from_private_bytes(bytes(range(32, 64))))
_RSA = PrivateKey.generate("rsa-2048")
_ID = bytes(range(16))


def _sealed(*keys: PrivateKey) -> bytes:
    batch = from_payloads([b"hello"], Stamp(1, _ID), limits=Limits())
    recipients = Recipients(key.public for key in keys)
    sealed = seal_batch(batch, recipients, limits=Limits(), entropy=lambda size: hashlib.shake_256(b"f").digest(size))
    return msgspec.msgpack.encode([sealed.ids()[0], sealed.payloads()[0], sealed.meta.envelope])


def _foreign() -> bytes:
    envelope = foreign_envelope(bytes(256))
    return msgspec.msgpack.encode([_ID, foreign_payload(bytes(16), b"x", bytes(16)), envelope])


SEEDS = (_sealed(_KEY), _sealed(_KEY, _OTHER, _RSA), _sealed(_RSA, _OTHER), _foreign())


def check(data: bytes) -> bool:
    """A message's id, payload and envelope. Nothing is raised for any of them: what cannot be opened says why."""
    try:
        identity, payload, envelope = msgspec.msgpack.decode(data, type=tuple[bytes, bytes, bytes])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    keys = OpeningKeys([_KEY, _RSA])
    opened: Any = open_columns([identity], pa.array([payload], pa.binary()), envelope, keys)
    in_columns: Any = open_columns(
        [identity], pa.array([payload], pa.binary()), pa.array([envelope], pa.binary()), keys
    )
    assert opened == in_columns
    assert (opened.payloads[0] is None) == bool(opened.problems)
    try:
        read = read_envelope(envelope)
    except InvalidEnvelope:
        assert opened.problems
        return False
    assert read.body + read.tag == envelope
    return True


TARGET = Target("envelopes", SEEDS, check, spoil_msgpack((b"", b"\0", b"\xff" * 40, bytes(16), None, 0)))
