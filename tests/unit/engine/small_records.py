"""A record that tests keep."""

from __future__ import annotations

import msgspec


class Note(msgspec.Struct, frozen=True):
    text: str
