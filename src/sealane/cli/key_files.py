"""The files of recipients' keys: the private one is for nobody else's eyes, from its first moment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sealane.errors import AlreadyExists, InvalidArgument
from sealane.whole_files import PRIVATE, PUBLIC, create_file

if TYPE_CHECKING:
    from sealane.security.envelopes import PrivateKey, PublicKey

_READ_BYTES_MAX = 1 << 20
"""A key has a few KiB: whatever is longer is another file."""


def write_key_pair(directory: Path, name: str, private: PrivateKey, passphrase: str | None) -> tuple[Path, Path]:
    """`NAME.key` and `NAME.pub`, both new. Raises `AlreadyExists`: a private key that is lost opens nothing again."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret, public = directory / f"{name}.key", directory / f"{name}.pub"
    for path in (secret, public):
        if os.path.lexists(path):
            raise AlreadyExists("file", str(path), "it is not written over; choose another name or directory")
    create_file(secret, private.pem(passphrase=passphrase).encode(), PRIVATE)
    create_file(public, private.public.pem().encode(), PUBLIC)
    return secret, public


def read_public_key(path: Path) -> PublicKey:
    from sealane.security.envelopes import PublicKey

    try:
        return PublicKey.from_pem(_content(path))
    except InvalidArgument as error:
        raise InvalidArgument(str(path), error.problem) from None


def read_private_keys(paths: Sequence[Path], passphrase_file: Path | None) -> list[PrivateKey]:
    """Each of them; the passphrase of one that has one is in the file, or asked for at a terminal."""
    return [_read_private_key(path, passphrase_file) for path in paths]


def _read_private_key(path: Path, passphrase_file: Path | None) -> PrivateKey:
    from sealane.security.envelopes import PrivateKey

    pem = _content(path)
    passphrase = passphrase_of(path, passphrase_file) if b"ENCRYPTED" in pem else None
    try:
        return PrivateKey.from_pem(pem, passphrase=passphrase)
    except InvalidArgument as error:
        raise InvalidArgument(str(path), error.problem) from None


def passphrase_of(path: Path, passphrase_file: Path | None) -> str | None:
    """Of an encrypted key: from the file that was given, or whoever sits at the terminal. None if there is neither."""
    if passphrase_file is not None:
        return read_passphrase(passphrase_file)
    if not sys.stdin.isatty():
        return None
    return str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True))


def read_passphrase(path: Path) -> str:
    """The first line of a file: never an argument, which other users of the machine could see."""
    line = _content(path).decode(errors="replace").partition("\n")[0].rstrip("\r")
    if not line:
        raise InvalidArgument(str(path), "has no passphrase in its first line")
    return line


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
