"""Moments as certificates write them: whole seconds of UTC, from and to µs since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND_US = 1_000_000
DAY_US = 24 * 3600 * SECOND_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def whole_seconds(moment_us: int) -> int:
    """The second that it is in: certificates know no fractions."""
    return moment_us // SECOND_US * SECOND_US


def to_utc(moment_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=moment_us)


def to_us(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def said(moment_us: int) -> str:
    """For people: `2026-01-31 12:00:00 UTC`."""
    return to_utc(moment_us).strftime("%Y-%m-%d %H:%M:%S UTC")
