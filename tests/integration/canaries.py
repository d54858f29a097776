"""Canaries: texts that stand for secrets, planted where secrets are, and looked for where none may be."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator

ALIGNMENTS = 3
"""Base64 writes the same bytes in three ways, by where among others they are."""


def canary(kind: str) -> str:
    """A text that nobody writes by chance, without a character that any encoding would have to escape."""
    return f"canary{kind}{os.urandom(12).hex()}"


def writings(secret: bytes) -> Iterator[bytes]:
    """How a secret looks as it is, as hex, and within base64 of more than itself."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for start in range(ALIGNMENTS):
        # The ends depend on what is around them: they are left out.
        middle = base64.b64encode(bytes(start) + secret)[4:-4]
        yield middle
        yield middle.translate(bytes.maketrans(b"+/", b"-_"))


class Aviary:
    """All canaries by what they stand for."""

    def __init__(self) -> None:
        self._secrets: dict[str, bytes] = {}

    def plant(self, kind: str) -> str:
        """A new one."""
        text = canary(kind)
        self.watch(kind, text.encode())
        return text

    def watch(self, kind: str, secret: bytes) -> None:
        """Something that others have made, and that is as secret."""
        assert len(secret) >= 12, "what is short is found by chance"
        self._secrets[kind] = secret

    @property
    def kinds(self) -> set[str]:
        return set(self._secrets)

    def found_in(self, said: bytes) -> list[str]:
        """Which of them were told."""
        return [kind for kind, secret in self._secrets.items() if any(each in said for each in writings(secret))]
