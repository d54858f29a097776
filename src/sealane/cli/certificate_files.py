"""Where an issued certificate goes: files for its holder, of which the key is for nobody else's eyes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sealane.errors import AlreadyExists
from sealane.whole_files import PRIVATE, PUBLIC, create_file

CA_FILE = "ca.crt"


class CertificateFiles:
    """`NAME.crt`, `NAME.key` and `ca.crt` in one directory."""

    def __init__(self, directory: Path, name: str, *, with_key: bool, force: bool) -> None:
        self._directory = directory
        self._certificate = directory / f"{name}.crt"
        self._key = directory / f"{name}.key" if with_key else None
        self._ca = directory / CA_FILE
        self._force = force

    def prepare(self) -> None:
        """Before anything is issued: make the directory, and raise `AlreadyExists` if a file would be lost."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._force:
            return
        for path in (self._certificate, self._key):
            if path is not None and os.path.lexists(path):
                raise AlreadyExists("file", str(path), "--force writes over it")

    def write(self, issued: dict[str, Any]) -> dict[str, str]:
        """Returns where each is. An authority's certificate that is there already and the same is left alone."""
        written = {"certificate": self._put(self._certificate, issued["certificate"], PUBLIC)}
        if self._key is not None:
            written["key"] = self._put(self._key, issued["key"], PRIVATE)
        if self._is_other(issued["ca"]):
            self._put(self._ca, issued["ca"], PUBLIC)
        return {**written, "ca": str(self._ca)}

    def _is_other(self, ca: str) -> bool:
        try:
            return self._ca.read_text(encoding="ascii") != ca
        except (FileNotFoundError, UnicodeDecodeError):
            return True

    def _put(self, path: Path, text: str, mode: int) -> str:
        """The file is new, and has its mode from its first moment; links are not followed."""
        if self._force:
            path.unlink(missing_ok=True)
        try:
            create_file(path, text.encode(), mode)
        except FileExistsError:
            raise AlreadyExists("file", str(path), "--force writes over it") from None
        return str(path)
