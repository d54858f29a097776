"""Moments, as commands read and show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import typer

from sealane.cli.durations import parse_seconds

MOMENT = "TIME"
"""How the help calls what `parse_moment` reads."""


def parse_moment(text: str) -> datetime:
    """`2026-01-31`, `2026-01-31T12:00` or how long ago, `10m`. Times without a zone are local."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_seconds(text))
    except (typer.BadParameter, OverflowError):
        raise typer.BadParameter(f"{text!r} is no time; write 2026-01-31T12:00, or how long ago: 10m") from None


def moment(time_us: int | None, otherwise: str = "") -> str:
    """`2026-01-31 12:00 UTC`, or what stands for none."""
    if time_us is None:
        return otherwise
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
