"""Inputs that are kept beside the targets: those that reach something new, and those that once found a bug."""

from __future__ import annotations

import hashlib
from pathlib import Path

_HERE = Path(__file__).parent
CORPUS, FOUND = _HERE / "corpus", _HERE / "found"


def kept(name: str) -> list[bytes]:
    """All that is kept for a target."""
    return [*_read(CORPUS / name), *found(name)]


def found(name: str) -> list[bytes]:
    """What has once found a bug: none of it may do that again."""
    return _read(FOUND / name)


def keep(folder: Path, name: str, data: bytes) -> Path:
    """Under a name that the content makes: the same input is kept once."""
    path = folder / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _read(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()]
