"""The package as one value: a zip of its own source, compressed, which travels to where it is not installed."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

PACKAGE = "sealane"
SOURCE = ".py"
LEFT_AT_HOME = frozenset(f"{PACKAGE}/{part}" for part in ("cli", "doors", "engine/local", "server", "testing"))
"""What only a node needs, or a person."""
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
"""One date for all files: the same source is the same parcel, so that whoever has unpacked it once has it."""
COMPRESSION = 9
"""It is packed once, and sent with each task."""


@cache
def parcel() -> bytes:
    """Sealane's source as it is here, installed or not: all that a client and executors need."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, file in sorted(_sources(PACKAGE, files(PACKAGE))):
            archive.writestr(zipfile.ZipInfo(name, ZIP_EPOCH), file.read_bytes())
    # As a whole: many small files have much in common.
    return zlib.compress(held.getvalue(), COMPRESSION)


def _sources(name: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if path in LEFT_AT_HOME:
            continue
        if entry.is_dir():
            yield from _sources(path, entry)
        elif entry.name.endswith(SOURCE):
            yield path, entry
