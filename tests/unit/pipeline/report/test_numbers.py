"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.report import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (999, "999"), (999.7, "1 k"), (1_234, "1.23 k"), (35_400_000, "35.4 M"), (2e9, "2 G")],
)
def test_counts_have_three_digits(value: float, text: str) -> None:
    assert numbers.count(value).replace("\u202f", " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ms"),
        (0.412, "0.41 ms"),
        (350, "350 ms"),
        (999.9, "1 s"),
        (1_240, "1.24 s"),
        (300_000, "5 min"),
        (9e6, "2.5 h"),
    ],
)
def test_latencies_are_told_in_the_unit_that_fits(value: float, text: str) -> None:
    assert numbers.milliseconds(value).replace("\u202f", " ") == text


def test_shares_sizes_lengths_and_plurals() -> None:
    assert numbers.percent(0.0004).replace("\u202f", " ") == "0.04 %"
    assert numbers.size_bytes(3 * 2**30).replace("\u202f", " ") == "3 GiB"
    assert [numbers.length(seconds) for seconds in (1, 60, 7_200, 30 * 86_400)] == [
        "1 second",
        "1 minute",
        "2 hours",
        "30 days",
    ]
    assert [numbers.per(seconds) for seconds in (1, 3_600, 300)] == ["per second", "per hour", "per 5 minutes"]
    assert [numbers.several(amount, "message") for amount in (1, 1_200)] == ["1 message", "1,200 messages"]


@given(st.floats(min_value=0, max_value=1e15))
def test_no_number_is_longer_than_a_tick_has_room_for(value: float) -> None:
    assert len(numbers.count(value)) <= 8
    assert "e" not in numbers.count(value)
