"""What CipherMQ's own clients do, as their document describes it, with the library that they use."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from Crypto.Cipher import AES, PKCS1_OAEP
from Crypto.Hash import SHA256
from Crypto.PublicKey import RSA
from Crypto.Random import get_random_bytes

from sealane.cipher.hybrid import OaepHash


def encrypt_message_hybrid(
    message: str, message_id: str, public_key: bytes, *, session_key_bytes: int = 16, oaep: OaepHash = "sha1"
) -> str:
    """The sender's: JSON with the five fields."""
    session_key = get_random_bytes(session_key_bytes)
    cipher = AES.new(session_key, AES.MODE_GCM)
    ciphertext, tag = cipher.encrypt_and_digest(message.encode("utf-8"))
    wrapped = _oaep(RSA.import_key(public_key), oaep).encrypt(session_key)
    fields = {"enc_session_key": wrapped, "nonce": cipher.nonce, "tag": tag, "ciphertext": ciphertext}
    return json.dumps({"message_id": message_id, **{name: b64encode(value).decode() for name, value in fields.items()}})


def decrypt_message_hybrid(
    written: bytes, private_key: bytes, *, passphrase: str | None = None, oaep: OaepHash = "sha1"
) -> str:
    """The receiver's: verifies the tag."""
    fields: dict[str, Any] = json.loads(written)
    key = RSA.import_key(private_key, passphrase)
    session_key = _oaep(key, oaep).decrypt(b64decode(fields["enc_session_key"]))
    cipher = AES.new(session_key, AES.MODE_GCM, nonce=b64decode(fields["nonce"]))
    return cipher.decrypt_and_verify(b64decode(fields["ciphertext"]), b64decode(fields["tag"])).decode("utf-8")


def _oaep(key: RSA.RsaKey, oaep: OaepHash) -> Any:
    return PKCS1_OAEP.new(key) if oaep == "sha1" else PKCS1_OAEP.new(key, hashAlgo=SHA256)
