"""What CipherMQ's clients seal is read."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import InvalidMessage
from sealane.message import Batch
from sealane.message.schema import ENVELOPE, PAYLOAD
from sealane.security.envelopes import OpeningKeys, PrivateKey, open_batch
from sealane.security.envelopes.foreign import foreign_envelope, foreign_payload
from sealane.security.envelopes.opening import CHANGED, NOT_FOR_US
from sealane.security.envelopes.sealing import with_columns
from tests.unit.security.envelopes.sealed import key, plain

SHA1, SHA256 = hashes.SHA1(), hashes.SHA256()


def foreign(payload: bytes, private: PrivateKey, digest: hashes.HashAlgorithm, key_bytes: int = 16) -> Batch:
    """As `PKCS1_OAEP.new(key).encrypt(session)` and `AES.new(session, AES.MODE_GCM)` of PyCryptodome make it."""
    session_key, nonce = os.urandom(key_bytes), os.urandom(16)
    public = private.public.material
    assert isinstance(public, RSAPublicKey)
    wrapped = public.encrypt(session_key, OAEP(MGF1(digest), digest, label=None))
    sealed = AESGCM(session_key).encrypt(nonce, payload, None)
    columns = {PAYLOAD: foreign_payload(nonce, sealed[:-16], sealed[-16:]), ENVELOPE: foreign_envelope(wrapped)}
    return with_columns(plain([b""]), {place: pa.array([value], pa.binary()) for place, value in columns.items()})


@pytest.mark.parametrize("digest", [SHA1, SHA256], ids=["sha1", "sha256"])
@pytest.mark.parametrize("key_bytes", [16, 32])
def test_a_message_of_another_sender_opens(digest: hashes.HashAlgorithm, key_bytes: int) -> None:
    sealed = foreign(b"hello from CipherMQ", key("rsa-2048"), digest, key_bytes)
    keys = OpeningKeys([key(), key("rsa-3072"), key("rsa-2048")])
    assert open_batch(sealed, keys)[0].payloads() == [b"hello from CipherMQ"]
    assert open_batch(sealed, OpeningKeys([key(), key("rsa-2048", 7)]))[1] == {0: NOT_FOR_US}


def test_a_message_of_another_sender_that_was_changed_is_refused() -> None:
    sealed = foreign(b"hello", key("rsa-2048"), SHA1)
    (payload,) = sealed.payloads()
    for changed in (payload[:-1] + bytes([payload[-1] ^ 1]), payload[:20], b"", b"\x00", b"\xff" + payload[1:]):
        batch = with_columns(sealed, {PAYLOAD: pa.array([changed], pa.binary())})
        assert open_batch(batch, OpeningKeys(key("rsa-2048")))[1] == {0: CHANGED}


def test_parts_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="session key has 100 bytes"):
        foreign_envelope(bytes(100))
    for length in (7, 65):
        with pytest.raises(InvalidMessage, match=f"nonce has {length} bytes"):
            foreign_payload(bytes(length), b"", bytes(16))
    with pytest.raises(InvalidMessage, match="tag has 12 bytes"):
        foreign_payload(bytes(16), b"", bytes(12))
    for length in (8, 64):
        foreign_payload(bytes(length), b"", bytes(16))
