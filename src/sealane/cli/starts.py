"""Where to begin, as people write it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

from sealane.cli.durations import parse_seconds

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
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_seconds(text))
    except (typer.BadParameter, OverflowError):
        raise typer.BadParameter(f"{text!r} is no place to start; write {START_HELP}") from None
