"""An authority of a test's own, and what it issues."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from sealane.node.surroundings import wall_clock_us
from sealane.security.ca.authority import Authority, Usage, Wish
from sealane.security.ca.keys import new_key, private_pem


class Papers:
    """An authority, and the files of what it issues."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self.authority = Authority.create(
            name, key_type="ecdsa-p384", days=30, now_us=wall_clock_us(), entropy=os.urandom
        )

    def issue(self, name: str, usage: Usage) -> tuple[Path, Path]:
        key = new_key("ecdsa-p384")
        names = ("localhost", "127.0.0.1") if usage == "server" else ()
        wish = Wish(name, key.public_key(), usage, names, 30)
        certificate = self.authority.issue(wish, wall_clock_us(), os.urandom)
        files = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_text(private_pem(key))
        return files

    def client(self, *shown: Path) -> ssl.SSLContext:
        """Of one that shows this certificate with its key, or none."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        if shown:
            context.load_cert_chain(shown[0], shown[1])
        return context
