"""The ways in which a message is written to standard output."""

from __future__ import annotations

import json
import sys
from enum import Enum

from sealane.cli.output import plain
from sealane.cli.shapes import Readable, message_object
from sealane.message.schema import PRIORITY_DEFAULT


class Format(Enum):
    """`text`: the payload and a line's end; `verbose`: after a line about it; `raw`: the payload alone; `json`."""

    text = "text"
    verbose = "verbose"
    raw = "raw"
    json = "json"

    def write(self, message: Readable) -> bytes:
        """The bytes that show it."""
        if self is Format.raw:
            return message.payload
        if self is Format.json:
            return json.dumps(message_object(message), ensure_ascii=False).encode() + b"\n"
        text = _for_terminal(message.payload) if sys.stdout.isatty() else message.payload
        if self is Format.text:
            return text + b"\n"
        return _about(message).encode() + b"\n" + text + b"\n"


def _about(message: Readable) -> str:
    created = message.created.astimezone().isoformat(sep=" ", timespec="milliseconds")
    parts = [f"{message.partition}@{message.offset}", created]
    if message.key is not None:
        parts.append(f"key={message.key.decode(errors='backslashreplace')}")
    if message.priority != PRIORITY_DEFAULT:
        parts.append(f"priority={message.priority}")
    if message.attempt is not None and message.attempt > 1:
        parts.append(f"attempt={message.attempt}")
    parts.extend(f"{name}={value}" for name, value in message.headers.items())
    return plain("# " + "  ".join(parts)).replace("\n", "\\n")


def _for_terminal(payload: bytes) -> bytes:
    """What a payload says must not move the cursor or change colours."""
    return plain(payload.decode(errors="backslashreplace")).encode()
