"""The key of a batch is HKDF-SHA256 as everyone knows it, so that other programs can open what was sealed."""

from __future__ import annotations

import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sealane.security.at_rest.keys import KEY_BYTES
from sealane.security.at_rest.sealing import SALT_BYTES, Sealer


class OneKey:
    """A keyring with a single known key."""

    key = bytes(range(32))

    def sealing_key(self, domain: str) -> tuple[int, bytes]:
        return 7, self.key


def test_sealed_bytes_open_with_the_hkdf_of_another_library() -> None:
    sealed = bytes(Sealer(OneKey(), os.urandom).seal("default", b"a batch", b"its place"))  # type: ignore[arg-type]
    salt, ciphertext = sealed[5 : 5 + SALT_BYTES], sealed[5 + SALT_BYTES :]
    key = HKDF(hashes.SHA256(), KEY_BYTES, salt, b"sealane batch v1").derive(OneKey.key)
    assert AESGCM(key).decrypt(bytes(12), ciphertext, b"its place") == b"a batch"
