"""Encrypting for one receiver: who has the key reads it, nobody changes it unnoticed."""

from __future__ import annotations

import base64
import os

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from hypothesis import given
from hypothesis import strategies as st

from sealane.cipher.errors import CannotDecrypt
from sealane.cipher.hybrid import (
    BODY_BYTES_MAX,
    CHANGED,
    NONCE_BYTES,
    NOT_FOR_THIS_KEY,
    OAEP_HASHES,
    OaepHash,
    decrypt,
    encrypt,
)
from sealane.cipher.keys import KEY_BITS
from sealane.errors import InvalidMessage
from sealane.wire.cipher.message import EncryptedMessage
from tests.unit.cipher.sealed import key, message

ID = "7d0f7e34-9d6e-4bb1-a1e5-0f1f0a2f4c55"


def changed(sealed: EncryptedMessage, name: str, value: bytes) -> EncryptedMessage:
    return msgspec.structs.replace(sealed, **{name: base64.b64encode(value).decode()})


def flipped(data: bytes, bit: int = 0) -> bytes:
    index = bit // 8 % len(data)
    return data[:index] + bytes([data[index] ^ 1 << bit % 8]) + data[index + 1 :]


@given(st.binary(max_size=2_000))
def test_what_was_encrypted_is_what_is_decrypted(body: bytes) -> None:
    assert decrypt(EncryptedMessage.read(message(ID, body).written()), key()) == body


@pytest.mark.parametrize("bits", KEY_BITS)
@pytest.mark.parametrize("oaep", OAEP_HASHES)
def test_every_key_reads_either_hash(bits: int, oaep: OaepHash) -> None:
    sealed = encrypt(b"hello", ID, key(bits=bits).public_key(), oaep=oaep)
    assert decrypt(sealed, key(bits=bits)) == b"hello"


def test_a_body_of_a_mebibyte_and_an_empty_one_go_through() -> None:
    for body in (b"", os.urandom(1 << 20)):
        assert decrypt(message(ID, body), key()) == body


def test_a_body_that_no_line_would_carry_is_refused() -> None:
    message(ID, bytes(BODY_BYTES_MAX))
    with pytest.raises(InvalidMessage, match="8,388,608 bytes"):
        message(ID, bytes(BODY_BYTES_MAX + 1))


def test_no_two_messages_share_a_session_key_or_a_nonce() -> None:
    one, other = message(ID), message(ID)
    assert one.bytes_of("nonce") != other.bytes_of("nonce")
    assert one.ciphertext != other.ciphertext
    assert len(one.bytes_of("nonce")) == NONCE_BYTES


@pytest.mark.parametrize("length", [16, 24, 32])
def test_session_keys_of_every_length_that_aes_has_are_read(length: int) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    session_key, nonce = os.urandom(length), os.urandom(12)
    sealed = AESGCM(session_key).encrypt(nonce, b"hello", None)
    wrapped = key().public_key().encrypt(session_key, OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), None))
    found = message(ID)
    for name, value in (
        ("enc_session_key", wrapped),
        ("nonce", nonce),
        ("tag", sealed[-16:]),
        ("ciphertext", sealed[:-16]),
    ):
        found = changed(found, name, value)
    assert decrypt(found, key()) == b"hello"


@given(st.sampled_from(EncryptedMessage.BINARY), st.integers(0, 10_000))
def test_a_single_changed_bit_anywhere_is_found(name: str, bit: int) -> None:
    sealed = message(ID)
    with pytest.raises(CannotDecrypt) as refused:
        decrypt(changed(sealed, name, flipped(sealed.bytes_of(name), bit)), key())
    assert refused.value.message_id == ID
    assert refused.value.reason == (NOT_FOR_THIS_KEY if name == "enc_session_key" else CHANGED)


def test_parts_of_two_messages_do_not_make_one() -> None:
    one, other = message(ID, b"one"), message(ID, b"two")
    for name in EncryptedMessage.BINARY:
        with pytest.raises(CannotDecrypt, match="was changed"):
            decrypt(msgspec.structs.replace(one, **{name: getattr(other, name)}), key())


@pytest.mark.parametrize("bits", KEY_BITS)
def test_another_key_reads_nothing(bits: int) -> None:
    with pytest.raises(CannotDecrypt, match="not encrypted for this private key"):
        decrypt(message(ID), key(1, bits))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("nonce", bytes(7), "its nonce has 7 bytes, it has 8 to 64"),
        ("nonce", bytes(65), "its nonce has 65 bytes"),
        ("nonce", b"", "its nonce has 0 bytes"),
        ("tag", bytes(12), "its tag has 12 bytes, it has 16"),
        ("tag", bytes(17), "its tag has 17 bytes"),
        ("enc_session_key", b"", "not encrypted for this private key"),
        ("enc_session_key", bytes(257), "not encrypted for this private key"),
        ("ciphertext", b"", "was changed on the way"),
    ],
)
def test_a_part_of_a_length_that_cannot_be_is_told(name: str, value: bytes, problem: str) -> None:
    with pytest.raises(CannotDecrypt, match=problem):
        decrypt(changed(message(ID), name, value), key())


def test_a_shortened_tag_is_not_taken_for_a_weak_one() -> None:
    sealed = message(ID)
    with pytest.raises(CannotDecrypt, match="its tag has 4 bytes"):
        decrypt(changed(sealed, "tag", sealed.bytes_of("tag")[:4]), key())


def test_what_is_no_base64_is_told_with_its_field() -> None:
    with pytest.raises(CannotDecrypt, match="nonce is not base64"):
        decrypt(msgspec.structs.replace(message(ID), nonce="?"), key())


@pytest.mark.parametrize("message_id", ["", "two words", "x" * 129, "line\nend"])
def test_an_id_that_cannot_stand_in_a_line_is_refused(message_id: str) -> None:
    with pytest.raises(InvalidMessage, match="message_id"):
        message(message_id)
