"""CipherMQ's own clients, which use PyCryptodome, read what is sent here; and what they send is read here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from Crypto.PublicKey import RSA

from sealane.cipher.hybrid import OAEP_HASHES, OaepHash, decrypt, encrypt
from sealane.cipher.keys import KEY_BITS, public_pem, read_private_key, read_public_key, write_pair
from sealane.wire.cipher.message import EncryptedMessage
from tests.unit.cipher.pycryptodome_client import decrypt_message_hybrid, encrypt_message_hybrid
from tests.unit.cipher.sealed import key

TEXT = "Grüße, 世界"
VECTORS = Path(__file__).with_name("pycryptodome_vectors.json")


@pytest.mark.parametrize("oaep", OAEP_HASHES)
@pytest.mark.parametrize("session_key_bytes", [16, 24, 32])
def test_what_its_sender_sends_is_read(session_key_bytes: int, oaep: OaepHash) -> None:
    pem = public_pem(key().public_key())
    written = encrypt_message_hybrid(TEXT, "id-1", pem, session_key_bytes=session_key_bytes, oaep=oaep)
    assert decrypt(EncryptedMessage.read(written.encode()), key()).decode() == TEXT


@pytest.mark.parametrize("bits", KEY_BITS)
def test_its_receiver_reads_what_is_sent_without_any_option(bits: int, tmp_path: Path) -> None:
    files = write_pair(tmp_path / "receiver", key(bits=bits))
    sent = encrypt(TEXT.encode(), "id-1", read_public_key(files.public)).written()
    assert decrypt_message_hybrid(sent, files.private.read_bytes()) == TEXT


def test_its_receiver_reads_the_other_hash_when_it_is_told_so(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "receiver", key())
    sent = encrypt(TEXT.encode(), "id-1", read_public_key(files.public), oaep="sha256").written()
    assert decrypt_message_hybrid(sent, files.private.read_bytes(), oaep="sha256") == TEXT
    with pytest.raises(ValueError, match="decryption"):
        decrypt_message_hybrid(sent, files.private.read_bytes())


def test_it_reads_private_keys_under_a_passphrase(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "receiver", key(), "open sesame")
    sent = encrypt(TEXT.encode(), "id-1", read_public_key(files.public)).written()
    assert decrypt_message_hybrid(sent, files.private.read_bytes(), passphrase="open sesame") == TEXT


@pytest.mark.parametrize("pkcs", [1, 8])
@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_the_keys_that_it_makes_are_read(pkcs: int, passphrase: str | None, tmp_path: Path) -> None:
    made = RSA.generate(2048)
    (tmp_path / "private.pem").write_bytes(made.export_key(pkcs=pkcs, passphrase=passphrase))
    (tmp_path / "public.pem").write_bytes(made.public_key().export_key())
    sent = encrypt(b"hello", "id-1", read_public_key(tmp_path / "public.pem"))
    assert decrypt(sent, read_private_key(tmp_path / "private.pem", passphrase)) == b"hello"


def test_what_it_once_sent_is_read_for_ever(tmp_path: Path) -> None:
    recorded = json.loads(VECTORS.read_text(encoding="utf-8"))
    (tmp_path / "private.pem").write_text(recorded["private_key"])
    private = read_private_key(tmp_path / "private.pem")
    for each in recorded["messages"]:
        sealed = EncryptedMessage.read(json.dumps(each["sent"]).encode())
        assert decrypt(sealed, private).decode() == each["text"], each["made"]
