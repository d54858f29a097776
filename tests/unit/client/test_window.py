"""The window of a consumer: it follows the pace of the loop, and a loop never waits for what nobody asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sealane.client.window import AHEAD_SECONDS, GROWTH_MAX, Window


def ahead(window: Window, *, a_second: float, stride: int = 500, message_bytes: float = 0) -> int:
    """Hand out messages at a pace, in strides; how many had been asked for and not handed out after the last asking."""
    now, here = 0.0, window.begin(0.0)
    ahead = here
    for _ in range(1_000):
        now += stride / a_second
        here -= stride
        if window.take(stride):
            ahead = here = here + window.ask(now, message_bytes)
    return ahead


def test_a_window_of_a_given_size_stays_so() -> None:
    assert ahead(Window(1_000), a_second=10_000_000) == 1_000


def test_a_fast_loop_has_what_it_handles_in_a_moment_ahead_of_it() -> None:
    assert ahead(Window(1_000, 8), a_second=200_001) == 200_000 * AHEAD_SECONDS


def test_it_grows_no_further_than_it_may() -> None:
    assert ahead(Window(1_000, GROWTH_MAX), a_second=10_000_000) == 8_000


def test_no_more_than_a_few_megabytes_are_ahead_of_it() -> None:
    assert ahead(Window(1_000, 8), a_second=10_000_000, message_bytes=1_000) == 3_000, "3 MiB of them"
    assert ahead(Window(1_000, 8), a_second=10_000_000, message_bytes=100_000) == 1_000, "as many as at first"


def test_it_grows_in_whole_batches() -> None:
    assert ahead(Window(10_000, 8), a_second=1_750_000, stride=5_000) == 30_000, "not the 35,000 of its pace"


def test_a_slow_loop_has_as_little_ahead_of_it_as_at_first() -> None:
    assert ahead(Window(1_000, 8), a_second=10_000) == 1_000


def test_a_loop_that_becomes_slow_is_sent_no_more_before_it_has_handled_what_it_has() -> None:
    window = Window(1_000, 8)
    assert ahead(window, a_second=10_000_000) == 8_000
    assert window.take(4_000)
    assert window.ask(1_000_000.0) == 0, "thousands wait for it, and it is slow by now"


def test_more_is_asked_for_in_strides() -> None:
    window = Window(1_000)
    window.begin(0.0)
    assert not window.take(499)
    assert window.take(1)


@given(
    size=st.integers(1, 5_000),
    growth=st.integers(1, GROWTH_MAX),
    steps=st.lists(st.tuples(st.floats(0, 10), st.floats(0.0001, 1)), max_size=200),
)
def test_whatever_the_pace_there_is_always_something_to_wait_for(
    size: int, growth: int, steps: list[tuple[float, float]]
) -> None:
    window = Window(size, growth)
    here, now = window.begin(0.0), 0.0
    for pause, share in steps:
        now += pause
        count = max(1, int(here * share))
        here -= count
        if window.take(count):
            here += window.ask(now)
        assert 0 < here <= size * growth
