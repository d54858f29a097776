"""Files of a data directory by which others verify what the node's authorities have signed, or taken back."""

from __future__ import annotations

import os
from pathlib import Path

IDENTITY_DIRECTORY = "identity"
AUTHORITY_FILE = "ca.crt"
REVOCATION_LIST_FILE = "ca.crl"

_PUBLIC = 0o644


def write_crl(directory: Path, pem: bytes) -> Path:
    """Write the revocation lists of a data directory's authorities. Returns where they are."""
    path = directory / IDENTITY_DIRECTORY / REVOCATION_LIST_FILE
    write_public(path, pem)
    return path


def write_public(path: Path, data: bytes) -> None:
    """Write what everybody may read: durable on return, and whoever reads it meanwhile sees the old one or the new one,
    whole.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PUBLIC)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """The new name is durable too."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
