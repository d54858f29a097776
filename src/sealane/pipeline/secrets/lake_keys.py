"""Sealing bodies, and hashing phone numbers, by the keys of a lake.

Layout of a sealed body: u8 version, u32 number of the master key (little-endian), 12 bytes of nonce, ciphertext, 16
bytes of tag. The key is HKDF-SHA256 of the master key and the domain; domain and place are associated data, so that
what was sealed for one message opens for no other.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sealane.errors import CorruptData, FormatTooNew, KeyUnavailable
from sealane.pipeline.clean.phone_numbers import normalised
from sealane.pipeline.secrets.key_file import KEY_BYTES, KeyFile, fresh, make_file, read_file, save_file

SEAL_VERSION = 1
NUMBER_PREFIX = "tel:"
"""What a hashed phone number begins with."""
KEY_PREFIX = "key:"
"""What a hashed message key begins with."""

_HEAD = struct.Struct("<BI")
_NONCE_BYTES = 12
_TAG_BYTES = 16
_PREFIX_BYTES = _HEAD.size + _NONCE_BYTES
OVERHEAD_BYTES = _PREFIX_BYTES + _TAG_BYTES
"""How much longer a sealed body is than what it holds."""

_BODY = b"sealane lake body v1\0"
_PEPPER = b"sealane lake pepper v1\0"
_KEY_PEPPER = b"sealane lake key pepper v1\0"
_CHECK = b"sealane lake keys check v1"


class LakeKeys:
    """The keys of one lake, opened.

    The newest master key seals, older ones open. Nonces are random, so a key is good for some four thousand million
    bodies of a domain: rotate before that. The pepper, by which numbers become hashes, never changes: the same number
    has the same hash for as long as the lake is there.

    Executors get the keys by value, in the closure of what runs there. They are then wherever Spark keeps closures: in
    memory, on the wire and perhaps in its local directories. On a cluster turn on `spark.network.crypto.enabled` and
    `spark.io.encryption.enabled`. Nothing of them is in a `repr`.
    """

    def __init__(self, masters: Mapping[int, bytes], pepper: bytes, path: Path) -> None:
        """`path` is the file that they are from."""
        self._masters = dict(masters)
        self._pepper = pepper
        self.path = path
        self._ciphers: dict[tuple[int, str], AESGCM] = {}
        self._peppers: dict[str, bytes] = {}

    @classmethod
    def open_or_make(cls, path: Path) -> Self:
        """The keys in a file, which is made if it is not there. Raises `KeyUnavailable` for one that cannot be used.

        Of a lake that has something in it already, open its keys by `keys_of`: that never makes others.
        """
        found = read_file(path)
        if found is None:
            made = fresh()
            found = made if make_file(path, made) else read_file(path)
        if found is None:
            raise KeyUnavailable(f"{path} was there and is gone: leave it where it is, and try again")
        return cls(found.masters, found.pepper, path)

    def __repr__(self) -> str:
        return f"<LakeKeys {self.numbers} of {str(self.path)!r}>"

    def __reduce__(self) -> tuple[type[LakeKeys], tuple[dict[int, bytes], bytes, Path]]:
        return LakeKeys, (self._masters, self._pepper, self.path)

    # --- the file -----------------------------------------------------------------------------------------------------

    @property
    def numbers(self) -> list[int]:
        """Of the master keys there are; the last one seals."""
        return sorted(self._masters)

    @property
    def newest(self) -> int:
        """The number of the key that seals."""
        return max(self._masters)

    @property
    def check(self) -> str:
        """A value that tells these keys from those of another lake, also after a rotation, and gives nothing away."""
        return hmac.digest(self._pepper, _CHECK, "sha256")[:16].hex()

    def rotate(self) -> int:
        """Seal what comes from now on by a new key, which is in the file on return; its number. Older ones still open.

        `reseal` seals anew what is in the lake, and `drop_older` gives up the older ones after that.
        """
        masters = self._saved().masters
        number = max(masters) + 1
        self._save(masters | {number: os.urandom(KEY_BYTES)})
        return number

    def drop_older(self) -> list[int]:
        """Give up all keys but the newest: what they have sealed never opens again. Returns their numbers.

        The caller has made sure that nothing needs them; `sealane.pipeline.bulk.resealing.drop_unneeded` does.
        """
        masters = self._saved().masters
        newest = max(masters)
        self._save({newest: masters[newest]})
        return sorted(masters.keys() - {newest})

    def _saved(self) -> KeyFile:
        """As it is now: somebody else may have rotated since this was opened."""
        found = read_file(self.path)
        if found is None or not hmac.compare_digest(found.pepper, self._pepper):
            raise KeyUnavailable(f"{self.path} is not there as it was opened; put it back first")
        return found

    def _save(self, masters: Mapping[int, bytes]) -> None:
        save_file(self.path, KeyFile(dict(masters), self._pepper))
        self._masters = dict(masters)
        self._ciphers.clear()

    # --- bodies -------------------------------------------------------------------------------------------------------

    def seal(self, domain: str, place: bytes, body: bytes) -> bytes:
        """Sealed bytes, which `open` gives back for the same domain and place only. The place is the message's id."""
        newest, nonce = self.newest, os.urandom(_NONCE_BYTES)
        head = _HEAD.pack(SEAL_VERSION, newest) + nonce
        return head + self._cipher(domain, newest).encrypt(nonce, body, _associated(domain, place))

    def open(self, domain: str, place: bytes, sealed: bytes) -> bytes:
        """What was sealed; `CorruptData` if a bit differs or it is of another message, `KeyUnavailable` without its
        key.
        """
        number = sealed_by(sealed)
        nonce = sealed[_HEAD.size : _PREFIX_BYTES]
        try:
            return self._cipher(domain, number).decrypt(nonce, sealed[_PREFIX_BYTES:], _associated(domain, place))
        except InvalidTag:
            raise CorruptData(
                f"the body of message {place.hex()} of domain {domain!r} does not open with lake key {number}: it was "
                "changed, or is of another message or another lake; restore the file that it is in"
            ) from None

    def seal_column(self, domains: pa.Array, places: pa.Array, bodies: pa.Array) -> pa.Array:
        """`seal` for each row; null stays null."""
        return _each(self.seal, domains, places, bodies)

    def open_column(self, domains: pa.Array, places: pa.Array, sealed: pa.Array) -> pa.Array:
        """`open` for each row; null stays null. Raises at the first that does not open."""
        return _each(self.open, domains, places, sealed)

    def _cipher(self, domain: str, number: int) -> AESGCM:
        found = self._ciphers.get((number, domain))
        if found is None:
            master = self._masters.get(number)
            if master is None:
                known = ", ".join(map(str, self.numbers))
                raise KeyUnavailable(
                    f"a body of domain {domain!r} is sealed by lake key {number}, and {self.path} has {known}: "
                    "restore a copy of the file that has it"
                )
            found = self._ciphers[number, domain] = AESGCM(_derived(master, _BODY, domain))
        return found

    # --- numbers ------------------------------------------------------------------------------------------------------

    def hash_number(self, domain: str, text: str) -> str:
        """`tel:` and 64 hex digits: the same for every writing of a number in this domain, and for no other one."""
        pepper = self._peppers.get(domain)
        if pepper is None:
            pepper = self._peppers[domain] = _derived(self._pepper, _PEPPER, domain)
        return NUMBER_PREFIX + hmac.digest(pepper, normalised(text).encode(), "sha256").hex()

    def hash_key(self, domain: str, key: bytes) -> str:
        """`key:` and 64 hex digits: a message key where it is spoken of and must not be told."""
        return KEY_PREFIX + hmac.digest(_derived(self._pepper, _KEY_PEPPER, domain), key, "sha256").hex()


def sealed_by(sealed: bytes) -> int:
    """The number of the master key that sealed a body. Raises `CorruptData` for bytes that are none."""
    if len(sealed) < OVERHEAD_BYTES:
        raise CorruptData(f"a sealed body has {OVERHEAD_BYTES} bytes at least, this one {len(sealed)}")
    version, number = _HEAD.unpack_from(sealed)
    if version != SEAL_VERSION:
        raise FormatTooNew("a sealed body", version, SEAL_VERSION)
    return int(number)


def _each(work: Callable[[str, bytes, bytes], bytes], domains: pa.Array, places: pa.Array, some: pa.Array) -> pa.Array:
    rows = zip(domains.to_pylist(), places.to_pylist(), some.to_pylist(), strict=True)
    return pa.array([None if body is None else work(domain, place, body) for domain, place, body in rows], pa.binary())


def _associated(domain: str, place: bytes) -> bytes:
    name = domain.encode()
    return len(name).to_bytes(2, "little") + name + place


def _derived(key: bytes, label: bytes, domain: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=label + domain.encode()).derive(key)
