"""What waits for a flush waits as long as it may, and a timer is not set anew for each that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sealane.node.flush_timer import FlushTimer


class Clock:
    """An event loop's time and timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.set: list[float] = []
        """All timers that were ever asked for."""
        self._timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[[], None]) -> Timer:
        timer = Timer(at, call)
        self.set.append(at)
        self._timers.append(timer)
        return timer

    def pass_to(self, moment: float) -> None:
        while due := [timer for timer in self._timers if not timer.over and timer.at <= moment]:
            first = min(due, key=lambda timer: timer.at)
            first.over = True
            self.now = max(self.now, first.at)
            first.call()
        self.now = moment


class Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call = call
        self.over = False

    def cancel(self) -> None:
        self.over = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    by_hand: Any = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: by_hand)
    clock: Clock = by_hand
    return clock


@pytest.fixture
def flushed(clock: Clock) -> list[float]:
    """When it was flushed."""
    return []


@pytest.fixture
def timer(clock: Clock, flushed: list[float]) -> FlushTimer:
    return FlushTimer(lambda: flushed.append(clock.now))


def test_it_flushes_at_the_earliest_moment_that_was_asked_for(clock: Clock, flushed: list[float], timer: FlushTimer):
    timer.within(1.0)
    timer.within(0.005)
    timer.within(0.5)
    clock.pass_to(2.0)
    assert flushed == [0.005]


def test_what_went_with_a_commit_is_not_flushed(clock: Clock, flushed: list[float], timer: FlushTimer):
    timer.within(0.005)
    timer.clear()
    clock.pass_to(1.0)
    assert flushed == []


def test_what_came_after_a_commit_is_flushed_in_its_own_time(clock: Clock, flushed: list[float], timer: FlushTimer):
    timer.within(0.005)
    clock.pass_to(0.004)
    timer.clear()
    timer.within(0.005)
    clock.pass_to(1.0)
    assert flushed == [pytest.approx(0.009)]


def test_what_is_more_urgent_than_what_the_timer_was_set_for_does_not_wait_for_it(
    clock: Clock, flushed: list[float], timer: FlushTimer
):
    timer.within(1.0)
    timer.clear()
    timer.within(0.005)
    clock.pass_to(2.0)
    assert flushed == [0.005]


def test_a_timer_that_fires_a_little_early_flushes(clock: Clock, flushed: list[float], timer: FlushTimer):
    timer.within(0.005)
    clock.set.clear()
    clock._timers[0].at = 0.0045  # Timers of an event loop are rounded to whole milliseconds.
    clock.pass_to(0.0045)
    assert flushed == [0.0045]
    assert clock.set == []


def test_a_thousand_commits_a_second_do_not_set_a_timer_each(clock: Clock, flushed: list[float], timer: FlushTimer):
    for message in range(1_000):
        clock.pass_to(message / 1_000)
        timer.clear()
        timer.within(1.0)
        timer.within(0.005)
    clock.pass_to(2.0)
    assert flushed == [pytest.approx(1.004)]
    assert len(clock.set) < 300


def test_a_closed_timer_calls_nobody(clock: Clock, flushed: list[float], timer: FlushTimer):
    timer.within(0.005)
    timer.close()
    clock.pass_to(1.0)
    assert flushed == []
