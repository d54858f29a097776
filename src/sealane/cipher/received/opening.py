"""The suffix of a file says in which shape messages are kept there."""

from __future__ import annotations

from pathlib import Path

from sealane.cipher.received.json_array import JsonArray
from sealane.cipher.received.json_lines import JsonLines
from sealane.cipher.received.received_file import ReceivedFile
from sealane.errors import InvalidArgument

SHAPES: dict[str, type[ReceivedFile]] = {".json": JsonArray, ".jsonl": JsonLines}


def open_received(path: Path) -> ReceivedFile:
    """The file, with what it has from earlier. Raises `InvalidArgument` for another suffix, and what the file does."""
    shape = SHAPES.get(path.suffix)
    if shape is None:
        raise InvalidArgument(str(path), "ends in neither .json (an array) nor .jsonl (appended, for many messages)")
    return shape(path)
