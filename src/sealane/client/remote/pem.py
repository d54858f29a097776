"""Certificates and keys as users give them: as a PEM text, or as a file that may be replaced while a lane is open."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealane.errors import InvalidArgument

PEM_BEGIN = "-----BEGIN "
PEM_BYTES_MAX = 1 << 20
"""Of a file with certificates or a key: the bundle of a whole machine is a quarter of it."""

PemLike = str | os.PathLike[str]
"""A PEM text, or the path of a file with one."""


class Pem:
    """One of them. Its content is in no `repr`."""

    def __init__(self, argument: str, given: PemLike) -> None:
        """`argument` is how errors call it. Raises `InvalidArgument` for what can be neither."""
        if not isinstance(given, str | os.PathLike):
            raise InvalidArgument(argument, f"must be a PEM text or the path of a file, not {type(given).__name__}")
        self._argument = argument
        self._text = given.encode() if isinstance(given, str) and PEM_BEGIN in given else None
        self._path = Path(given) if self._text is None else None

    def __repr__(self) -> str:
        return f"Pem({self._argument!r}, {str(self._path) if self._path else 'text'!r})"

    @property
    def state(self) -> tuple[int, ...]:
        """Changes when the file is replaced or written to; of one that cannot be looked at, nothing is known."""
        if self._path is None:
            return ()
        try:
            found = os.stat(self._path)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read(self) -> bytes:
        """Raises `InvalidArgument` if it cannot be read or is no PEM."""
        if self._path is None:
            assert self._text is not None
            return self._text
        try:
            with self._path.open("rb") as file:
                text = file.read(PEM_BYTES_MAX + 1)
        except OSError as error:
            raise InvalidArgument(self._argument, f"{str(self._path)!r} cannot be read: {error.strerror}") from None
        if len(text) > PEM_BYTES_MAX or PEM_BEGIN.encode() not in text:
            raise InvalidArgument(self._argument, f"{str(self._path)!r} is no PEM file ('{PEM_BEGIN}…')")
        return text


@contextmanager
def as_private_file(content: bytes) -> Iterator[str]:
    """The path of a file with this content that nobody else can open, and of which nothing is left afterwards.

    OpenSSL, as Python has it, reads certificate chains and keys from files only.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sealane", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="sealane-") as directory:
        path = Path(directory, "pem")
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)
