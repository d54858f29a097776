"""Where to begin, as people write it."""

from __future__ import annotations

import re
from datetime import datetime

import typer

from sealane.cli.moments import parse_moment

START_HELP = "earliest, latest, a time (2026-01-31T12:00), how long ago (10m), or offsets (0:120,1:80)"
_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")


def parse_start(text: str) -> str | datetime | dict[int, int]:
    """`Start` of the client: a word, a moment, or offsets by partition. Times without a zone are local."""
    if text in ("earliest", "latest"):
        return text
    if _OFFSETS.fullmatch(text):
        pairs = (pair.split(":") for pair in text.split(","))
        return {int(partition): int(offset) for partition, offset in pairs}
    try:
        return parse_moment(text)
    except typer.BadParameter:
        raise typer.BadParameter(f"{text!r} is no place to start; write {START_HELP}") from None
