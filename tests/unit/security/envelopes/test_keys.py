"""Keys of recipients: read, written, told apart, and kept out of sight."""

from __future__ import annotations

import base64
import hashlib
import pickle

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from sealane.errors import InvalidArgument
from sealane.security.envelopes import KEY_KINDS, KeyKind, PrivateKey, PublicKey, same_fingerprint
from sealane.security.envelopes.keys import PEM_BYTES_MAX
from tests.unit.security.envelopes.sealed import key


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_a_key_is_the_same_after_it_was_written_and_read(kind: KeyKind) -> None:
    private = key(kind)
    assert private.public.algorithm == kind
    assert PublicKey.from_pem(private.public.pem()) == private.public
    assert PrivateKey.from_pem(private.pem()).public == private.public


def test_a_passphrase_protects_a_private_key() -> None:
    private = key()
    protected = private.pem(passphrase="open sesame")
    assert "ENCRYPTED PRIVATE KEY" in protected
    assert PrivateKey.from_pem(protected, passphrase="open sesame").public == private.public
    for wrong in (None, "open says me"):
        with pytest.raises(InvalidArgument, match="passphrase"):
            PrivateKey.from_pem(protected, passphrase=wrong)
    with pytest.raises(InvalidArgument, match="leave it out"):
        PrivateKey.from_pem(private.pem(), passphrase="open sesame")


def test_a_fingerprint_is_the_hash_of_the_public_key_as_every_tool_writes_it() -> None:
    public = key().public
    digest = hashlib.sha256(public.der).digest()
    assert public.fingerprint == "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    assert public.key_id == digest[:8]
    assert same_fingerprint(public.fingerprint, public.fingerprint + "=")
    assert not same_fingerprint(public.fingerprint, key("x25519", 1).public.fingerprint)


def test_keys_are_equal_if_they_are_the_same_key() -> None:
    public = key().public
    again = PublicKey.from_pem(public.pem())
    assert {public, again} == {public}
    assert public != key("x25519", 1).public


@pytest.mark.parametrize("kind", ["x25519", "rsa-2048"])
def test_nothing_of_a_private_key_is_shown(kind: KeyKind) -> None:
    private = key(kind)
    body = "".join(private.pem().splitlines()[1:-1])
    for shown in (repr(private), str(private), f"{private}", repr([private])):
        assert private.public.fingerprint in shown
        assert not any(body[at : at + 12] in shown for at in range(0, len(body) - 12, 4))
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(private)


def test_a_key_of_another_kind_or_size_is_refused() -> None:
    def pem(public: object) -> bytes:
        return public.public_bytes(  # type: ignore[attr-defined]
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    with pytest.raises(InvalidArgument, match="another kind"):
        PublicKey.from_pem(pem(ec.generate_private_key(ec.SECP256R1()).public_key()))
    with pytest.raises(InvalidArgument, match="RSA of 1,024 bits"):
        PublicKey.from_pem(pem(rsa.generate_private_key(65537, 1024).public_key()))
    with pytest.raises(InvalidArgument, match="there is no 'rsa-1024'"):
        PrivateKey.generate("rsa-1024")  # type: ignore[arg-type]


def test_a_point_of_low_order_is_refused_as_a_public_key() -> None:
    for point in (bytes(32), b"\1" + bytes(31)):
        with pytest.raises(InvalidArgument, match="low order"):
            PublicKey(X25519PublicKey.from_public_bytes(point))


def test_a_private_key_given_as_a_public_one_is_refused_without_a_word_of_it() -> None:
    secret = key("rsa-2048").pem()
    with pytest.raises(InvalidArgument, match="stays where it is") as refusal:
        PublicKey.from_pem(secret)
    assert secret.splitlines()[1] not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a public key"):
        PublicKey.from_pem(text)
    with pytest.raises(InvalidArgument, match="is not a private key"):
        PrivateKey.from_pem(text)


def test_a_key_of_another_kind_that_is_cut_short_is_refused() -> None:
    x448_of_32_bytes = base64.b64encode(bytes.fromhex("302e020100300506032b656f04220420") + bytes(32)).decode()
    with pytest.raises(InvalidArgument, match="is not a private key"):
        PrivateKey.from_pem(f"-----BEGIN PRIVATE KEY-----\n{x448_of_32_bytes}\n-----END PRIVATE KEY-----\n")


def test_a_key_longer_than_any_is_refused_before_it_is_read() -> None:
    PublicKey.from_pem(key().public.pem() + "\n" * (PEM_BYTES_MAX - len(key().public.pem())))
    with pytest.raises(InvalidArgument, match="at most"):
        PublicKey.from_pem("a" * (PEM_BYTES_MAX + 1))
