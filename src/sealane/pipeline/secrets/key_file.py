"""The key file of a lake: numbered master keys, and the pepper, readable by its owner alone.

It is there whole or not at all, and it tells by a checksum whether it is as it was written.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from sealane.errors import FormatTooNew, KeyUnavailable
from sealane.whole_files import PRIVATE, create_file, replace_file, sync

KIND = "sealane lake keys: keep this file secret and back it up; without it sealed bodies cannot be read"
FORMAT = 1
KEY_BYTES = 32

_OTHERS = 0o007


class KeyFile(msgspec.Struct, frozen=True):
    """What is in the file. None of the keys is in a `repr`."""

    masters: dict[int, bytes]
    """By number: the highest seals, the others only open."""
    pepper: bytes

    def __repr__(self) -> str:
        return f"KeyFile(masters={sorted(self.masters)})"


class _Written(msgspec.Struct, frozen=True):
    kind: str
    format: int
    masters: dict[str, str]
    pepper: str
    sum: str = ""


def fresh() -> KeyFile:
    """Keys that nobody has had before."""
    return KeyFile({1: os.urandom(KEY_BYTES)}, os.urandom(KEY_BYTES))


def make_file(path: Path, keys: KeyFile) -> bool:
    """Write a file that is not there yet, durable on return; False if there is one, which stays as it is.

    Of two who make it at once one succeeds, and the other one finds it whole.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    try:
        create_file(draft, _text(keys), PRIVATE)
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    sync(path.parent)
    return True


def save_file(path: Path, keys: KeyFile) -> None:
    """Put it in the place of the one that is there, durable on return."""
    replace_file(path, _text(keys), PRIVATE)


def read_file(path: Path) -> KeyFile | None:
    """What is in the file, None if there is none. `KeyUnavailable` for one that is damaged, or open to everybody."""
    try:
        data, mode = path.read_bytes(), path.stat().st_mode
    except FileNotFoundError:
        return None
    if mode & _OTHERS:
        raise KeyUnavailable(f"{path} can be read or written by everybody on this machine: chmod 600 {path}")
    try:
        written = msgspec.json.decode(data, type=_Written)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise KeyUnavailable(f"{path} is no key file of a lake, or was cut short; restore it from a copy") from None
    if written.format > FORMAT:
        raise FormatTooNew(str(path), written.format, FORMAT)
    if not hmac.compare_digest(written.sum.encode(), _sum(written).encode()):
        raise KeyUnavailable(f"{path} is damaged (its checksum does not match); restore it from a copy")
    masters = {int(number): bytes.fromhex(key) for number, key in written.masters.items()}
    keys = KeyFile(masters, bytes.fromhex(written.pepper))
    if not masters or {len(key) for key in (*masters.values(), keys.pepper)} != {KEY_BYTES}:
        raise KeyUnavailable(f"{path} does not hold keys of {KEY_BYTES} bytes; restore it from a copy")
    return keys


def _text(keys: KeyFile) -> bytes:
    masters = {str(number): key.hex() for number, key in sorted(keys.masters.items())}
    written = _Written(KIND, FORMAT, masters, keys.pepper.hex())
    whole = msgspec.structs.replace(written, sum=_sum(written))
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def _sum(written: _Written) -> str:
    content = msgspec.json.encode(msgspec.structs.replace(written, sum=""))
    return hashlib.sha256(b"sealane lake keys\0" + content).hexdigest()[:16]
