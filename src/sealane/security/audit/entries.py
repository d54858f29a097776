"""The entries of the audit log, and the chain that they make: each holds the hash of the one before it.

An entry's hash is the SHA-256 of its JSON without `hash`: keys sorted, no spaces, UTF-8. Anybody can compute it anew,
from the log or from lines that were exported, and so tell whether the entries are those that were written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

import msgspec

from sealane.errors import CorruptData

AUDIT_TOPIC = "audit"
"""In the system's domain."""
NO_ENTRY = "0" * 64
"""What the very first entry says that it follows."""
TEXT_CHARS_MAX = 256
"""Of each text in an entry; more is cut off: entries are for looking through, and some of what they tell of comes from
strangers."""
DETAILS_MAX = 16
"""Details of one entry: as many as the arguments of any command."""

Outcome = Literal["ok", "refused"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, as it is written down."""

    number: int
    """From 0: its offset in the log."""
    time_us: int
    event: str
    outcome: Outcome
    principal: str = ""
    client_id: str = ""
    credential: str = ""
    address: str = ""
    door: str = ""
    resource: str = ""
    details: dict[str, str | int] = {}
    previous: str
    """The hash of the entry before it."""
    hash: str = ""

    def computed_hash(self) -> str:
        """What `hash` is if nothing was changed."""
        content = msgspec.to_builtins(self)
        del content["hash"]
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    def sealed(self) -> Entry:
        """With its hash."""
        return msgspec.structs.replace(self, hash=self.computed_hash())

    def to_line(self) -> bytes:
        """As JSON, without a newline: what the log holds, and what is exported."""
        return msgspec.json.encode(self)


_lines = msgspec.json.Decoder(Entry)


def from_line(line: bytes | str) -> Entry:
    """Raises `CorruptData` if it is no entry."""
    try:
        return _lines.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptData(f"this is not an entry of an audit log: {error}") from None


def fitting(text: str) -> str:
    """A text as it may be in an entry: not too long, and such that it can be encoded."""
    cut = text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 1] + "…"
    return cut.encode("utf-8", "backslashreplace").decode()


def fitting_details(details: Mapping[str, str | int]) -> dict[str, str | int]:
    return {fitting(name): _fitting_value(value) for name, value in list(details.items())[:DETAILS_MAX]}


def _fitting_value(value: str | int) -> str | int:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, int) else fitting(value)
