"""Copying files so that the copies can be trusted: in short steps, hashed on the way, durable at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Generator

from sealane.engine.local.files import File, Files
from sealane.errors import CorruptData

STEP_BYTES = 4 << 20
"""How much is copied, and synced, at once: commits that share the disk do not wait long behind it."""


def copy_file(
    source: Files, name: str, target: Files, target_name: str, length: int | None = None
) -> Generator[int, None, tuple[int, str]]:
    """Copy a file, or its first `length` bytes. Yields the bytes of each step; returns the size and the SHA-256.

    `CorruptData` when the file is shorter than `length`. The new name is durable once its directory is synced.
    """
    reading = source.open(name)
    try:
        size = reading.size if length is None else length
        writing = target.open(target_name, create=True)
        try:
            digest = yield from _copy(reading, writing, size, name)
        finally:
            writing.close()
    finally:
        reading.close()
    return size, digest


def _copy(source: File, target: File, size: int, name: str) -> Generator[int, None, str]:
    digest = hashlib.sha256()
    position = 0
    while position < size:
        chunk = source.read_at(position, min(STEP_BYTES, size - position))
        if not chunk:
            raise CorruptData(f"{name} ends at byte {position:,}, {size:,} were expected")
        digest.update(chunk)
        target.write_at(position, [chunk])
        target.sync()
        position += len(chunk)
        yield len(chunk)
    return digest.hexdigest()


def write_whole(target: Files, name: str, data: bytes) -> tuple[int, str]:
    """Write a small file; returns its size and SHA-256. The name is durable once its directory is synced."""
    file = target.open(name, create=True)
    try:
        file.write_at(0, [data])
        file.sync()
    finally:
        file.close()
    return len(data), hashlib.sha256(data).hexdigest()
