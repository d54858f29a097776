"""The circuit breaker: closed, open, half-open, and back."""

from __future__ import annotations

from sealane.node.webhooks.breaker import Breaker


def breaker() -> Breaker:
    return Breaker(failures_max=3, open_seconds=10, open_seconds_max=30)


def failed(times: int, at: float = 0.0) -> Breaker:
    made = breaker()
    for _ in range(times):
        made.failed(at)
    return made


def test_it_stays_closed_below_its_number_of_failures() -> None:
    made = failed(2)
    assert made.state(0) == "closed"
    assert made.wait_seconds(0) == 0


def test_it_opens_at_its_number_of_failures_in_a_row() -> None:
    made = failed(3)
    assert made.state(0) == "open"
    assert made.wait_seconds(4) == 6


def test_a_success_in_between_begins_the_count_anew() -> None:
    made = failed(2)
    made.succeeded()
    made.failed(0)
    made.failed(0)
    assert made.state(0) == "closed"


def test_after_its_pause_it_is_half_open_and_closes_on_success() -> None:
    made = failed(3)
    assert made.state(9.9) == "open"
    assert made.state(10) == "half-open"
    assert made.wait_seconds(10) == 0
    made.succeeded()
    assert (made.state(10), made.failures) == ("closed", 0)


def test_each_failed_try_doubles_the_pause_up_to_the_longest() -> None:
    made, pauses, now = failed(3), [], 0.0
    for _ in range(4):
        pauses.append(made.wait_seconds(now))
        now += pauses[-1]
        assert made.state(now) == "half-open"
        made.failed(now)
    assert pauses == [10, 20, 30, 30]


def test_once_closed_its_pauses_begin_with_the_shortest() -> None:
    made = failed(5)
    made.succeeded()
    for _ in range(3):
        made.failed(100)
    assert made.wait_seconds(100) == 10


def test_a_receiver_that_asks_for_time_gets_it_also_while_it_is_closed() -> None:
    made = breaker()
    made.failed(0, hold_seconds=7)
    assert made.state(0) == "closed"
    assert made.wait_seconds(1) == 6


def test_the_longer_of_both_pauses_holds() -> None:
    longer, shorter = failed(2), failed(2)
    longer.failed(0, hold_seconds=60)
    shorter.failed(0, hold_seconds=1)
    assert longer.wait_seconds(0) == 60
    assert shorter.wait_seconds(0) == 10
