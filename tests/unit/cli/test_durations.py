"""Durations, sizes and places to start, as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import typer

from sealane.cli.durations import duration, parse_seconds, rate, size
from sealane.cli.starts import parse_start


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("10s", 10),
        ("5m", 300),
        ("5min", 300),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        ("7d", 604_800),
        ("2w", 1_209_600),
    ],
)
def test_a_duration_is_read_as_it_is_written(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "10x", "s", "5m later", "-1", "-5s", "nan", "inf", "1h-30m", "1 h"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no duration"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0123, "12ms"),
        (1, "1s"),
        (12.34, "12.3s"),
        (60, "1m"),
        (200, "3m 20s"),
        (3_600, "1h"),
        (3_601, "1h"),
        (604_800, "7d"),
        (187_200, "2d 4h"),
    ],
)
def test_a_duration_is_shown_in_its_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (3 * 2**30, "3.0 GiB"), (2**60, "1024.0 PiB")],
)
def test_a_size_is_shown_in_its_largest_unit(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (0, "0"),
        (0.04, "0"),
        (0.42, "0.4/s"),
        (850, "850/s"),
        (9_999, "9999/s"),
        (12_500, "12.5k/s"),
        (1_234_567, "1.2M/s"),
    ],
)
def test_a_rate_is_short(per_second: float, text: str) -> None:
    assert rate(per_second) == text


def test_a_place_to_start_is_a_word_a_moment_a_time_ago_or_offsets() -> None:
    assert parse_start("earliest") == "earliest"
    assert parse_start("latest") == "latest"
    assert parse_start("0:120,1:80") == {0: 120, 1: 80}
    assert parse_start("2026-01-31T12:00:00+00:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    local = parse_start("2026-01-31")
    assert isinstance(local, datetime)
    assert local.tzinfo is not None
    ago = parse_start("1h")
    assert isinstance(ago, datetime)
    assert timedelta(minutes=59) < datetime.now(UTC) - ago < timedelta(minutes=61)


@pytest.mark.parametrize("text", ["", "first", "0:", "0:1,", "1:2:3", "yesterday", "99999999999d"])
def test_what_is_no_place_to_start_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no place to start"):
        parse_start(text)
