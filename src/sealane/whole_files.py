"""Files that are there whole or not at all, with their mode from their first moment."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600
"""For the owner alone."""
PUBLIC = 0o644
"""For everybody to read."""


def create_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, durable on return. Raises `FileExistsError`; links are not followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file, instead of one that may be there: durable on return, and whoever reads it meanwhile sees the old
    one or the new one. A directory that is missing is made, for its owner alone.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)  # One that a crash left behind may have another mode.
    try:
        create_file(draft, data, mode)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)  # The new name is durable too.


def sync(path: Path) -> None:
    """Return when what is in a file, or the names in a directory, is durable, whoever has written it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
