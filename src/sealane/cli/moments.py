"""Moments, as commands show them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(time_us: int | None, otherwise: str = "") -> str:
    """`2026-01-31 12:00 UTC`, or what stands for none."""
    if time_us is None:
        return otherwise
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
