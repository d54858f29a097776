"""A master key as a file to keep elsewhere: as it is, or sealed by a passphrase.

A JSON object of its own kind, not the key file itself, so that it cannot be taken for one: it tells by the key's check
value which data directories the key belongs to, without a need of the passphrase.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import FormatTooNew, InvalidArgument, KeyUnavailable
from sealane.security import argon2
from sealane.security.at_rest.master_key import KEY_BYTES, check_value

KIND = "sealane master key backup"
FORMAT = 1
PASSPHRASE_CHARS_MIN = 12
"""A passphrase is guessed by machines that have the file: Argon2id makes each guess dear, and length their number."""

ARGON2_MEMORY_KIB = 256 << 10
"""What a guess takes: a quarter of a gibibyte, for about half a second. It is asked once in years."""
ARGON2_ITERATIONS = 3
ARGON2_LANES = 4
ARGON2_MEMORY_KIB_MAX = 4 << 20
ARGON2_ITERATIONS_MAX = 1_000
"""A file that wants more than this is no backup that Sealane has made, and must not keep the machine busy."""

_SALT_BYTES = 16
_NONCE_BYTES = 12


class _Sealed(msgspec.Struct, frozen=True):
    """The key, sealed by a passphrase, with all that it takes beside it to open it."""

    kdf: str
    memory_kib: int
    iterations: int
    lanes: int
    salt: str
    nonce: str
    data: str


class KeyBackup(msgspec.Struct, frozen=True):
    """What a backup file says. The key itself is in no `repr`."""

    kind: str
    format: int
    check: str
    """The check value of the key, in hex."""
    made_us: int
    key: str | None = None
    sealed: _Sealed | None = None
    sum: str = ""

    def __repr__(self) -> str:
        return f"KeyBackup(check={self.check!r}, has_passphrase={self.has_passphrase})"

    @property
    def has_passphrase(self) -> bool:
        return self.sealed is not None


def make_backup(master: bytes, passphrase: str | None, *, made_us: int, entropy: Callable[[int], bytes]) -> bytes:
    """The content of a backup file. `InvalidArgument` for a passphrase that is too short to be of use."""
    check = check_value(master).hex()
    if passphrase is None:
        backup = KeyBackup(KIND, FORMAT, check, made_us, key=master.hex())
    else:
        check_passphrase(passphrase)
        salt, nonce = entropy(_SALT_BYTES), entropy(_NONCE_BYTES)
        cost = (ARGON2_MEMORY_KIB, ARGON2_ITERATIONS, ARGON2_LANES)
        data = AESGCM(_derive(passphrase, salt, *cost)).encrypt(nonce, master, check.encode())
        sealed = _Sealed("argon2id", *cost, salt.hex(), nonce.hex(), data.hex())
        backup = KeyBackup(KIND, FORMAT, check, made_us, sealed=sealed)
    whole = msgspec.structs.replace(backup, sum=_sum(backup))
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def read_backup(data: bytes, where: str) -> KeyBackup:
    """Read back what `make_backup` wrote; `where` is what an error calls the file."""
    try:
        backup = msgspec.json.decode(data, type=KeyBackup)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        backup = None
    if backup is None or backup.kind != KIND or (backup.key is None) == (backup.sealed is None):
        raise KeyUnavailable(f"{where} is not a backup of a Sealane master key (`sealane key backup` makes one)")
    if backup.format > FORMAT:
        raise FormatTooNew(where, backup.format, FORMAT)
    if not hmac.compare_digest(backup.sum.encode(), _sum(backup).encode()):
        raise KeyUnavailable(f"{where} is damaged (its checksum does not match); use another copy")
    return backup


def open_backup(backup: KeyBackup, passphrase: str | None, where: str) -> bytes:
    """The master key in it. `KeyUnavailable` for a wrong passphrase, or for one that is missing."""
    if backup.sealed is None:
        master = _bytes(backup.key or "", where)
    elif passphrase is None:
        raise KeyUnavailable(f"{where} is sealed by a passphrase: give it")
    else:
        master = _opened(backup.sealed, backup.check, passphrase, where)
    if len(master) != KEY_BYTES or not hmac.compare_digest(check_value(master).hex().encode(), backup.check.encode()):
        raise KeyUnavailable(f"{where} does not hold the key that it says; use another copy")
    return master


def check_passphrase(passphrase: str) -> None:
    if len(passphrase) < PASSPHRASE_CHARS_MIN:
        raise InvalidArgument(
            "passphrase", f"has {len(passphrase)} characters, at least {PASSPHRASE_CHARS_MIN} are needed"
        )


def _opened(sealed: _Sealed, check: str, passphrase: str, where: str) -> bytes:
    if sealed.kdf != "argon2id":
        raise KeyUnavailable(f"{where} is sealed in a way that this version does not know ({sealed.kdf!r})")
    if not (
        1 <= sealed.iterations <= ARGON2_ITERATIONS_MAX
        and 8 * sealed.lanes <= sealed.memory_kib <= ARGON2_MEMORY_KIB_MAX
        and sealed.lanes >= 1
    ):
        raise KeyUnavailable(f"{where} asks for more work than any backup does; use another copy")
    cost = (sealed.memory_kib, sealed.iterations, sealed.lanes)
    salt, nonce, data = (_bytes(text, where) for text in (sealed.salt, sealed.nonce, sealed.data))
    try:
        return AESGCM(_derive(passphrase, salt, *cost)).decrypt(nonce, data, check.encode())
    except (InvalidTag, ValueError):
        raise KeyUnavailable(f"the passphrase does not open {where}") from None


def _derive(passphrase: str, salt: bytes, memory_kib: int, iterations: int, lanes: int) -> bytes:
    cost = {"iterations": iterations, "lanes": lanes, "memory_kib": memory_kib}
    return argon2.derive(passphrase.encode(), salt=salt, length=KEY_BYTES, **cost)


def _bytes(text: str, where: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise KeyUnavailable(f"{where} is damaged; use another copy") from None


def _sum(backup: KeyBackup) -> str:
    content = msgspec.json.encode(msgspec.structs.replace(backup, sum=""))
    return hashlib.sha256(b"sealane master key backup\0" + content).hexdigest()[:16]
