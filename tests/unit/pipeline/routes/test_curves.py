"""What is known of nodes: robust, by the hour of the week where that was seen, and by the last days else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sealane.pipeline.routes.curves import (
    GONE_HOURS,
    LOOKBACK_HOURS,
    NODE_HOURS,
    fitted_capacity,
    hour_of_week,
    known_at,
)
from sealane.pipeline.routes.learning import learn
from sealane.routing.weights import HOURS_OF_WEEK

NOW = 500_000


def seen(*rows: dict[str, Any]) -> pa.Table:
    usual = {
        "node": "a",
        "attempts": 6_000,
        "failures": 0,
        "per_second": 50.0,
        "busy_per_second": 50.0,
        "other_per_second": 0.0,
        "capacity_per_second": 100.0,
        "p95_ms": 20.0,
    }
    return pa.Table.from_pylist([{**usual, **row} for row in rows], schema=NODE_HOURS)


def test_hours_of_the_week_begin_on_monday() -> None:
    assert hour_of_week(0) == 3 * 24  # 1970 began on a Thursday.
    assert hour_of_week(4 * 24) == 0
    assert hour_of_week(4 * 24 - 1) == HOURS_OF_WEEK - 1


def test_nothing_seen_is_nothing_known() -> None:
    assert known_at(seen(), NOW) is None
    assert known_at(seen({"hour": NOW}), NOW) is None, "what is of this hour or later is not known yet"
    assert known_at(seen({"hour": NOW - LOOKBACK_HOURS - 1}), NOW) is None
    assert known_at(seen({"hour": NOW - 1, "p95_ms": None}), NOW) is None


def test_latency_at_rest_is_what_the_load_does_not_explain() -> None:
    known = known_at(seen({"hour": NOW - 1}, {"hour": NOW - 2}), NOW)
    assert known is not None
    assert known.curves.rest_ms == pytest.approx([10.0])
    assert known.per_second == pytest.approx(50.0)
    assert (known.hours_seen, known.messages.tolist()) == (0, [12_000])


def test_an_hour_of_the_week_is_drawn_to_the_last_days_the_less_it_was_seen() -> None:
    lately = [{"hour": NOW - ago} for ago in range(1, 25)]
    same = [{"hour": NOW - HOURS_OF_WEEK * weeks, "p95_ms": 80.0} for weeks in (1, 2, 3, 4)]
    at_rest = []
    for weeks in (0, 1, 2, 4):
        known = known_at(seen(*lately, *same[:weeks]), NOW)
        assert known is not None
        assert known.hours_seen == weeks
        at_rest.append(float(known.curves.rest_ms[0]))
    assert at_rest == sorted(at_rest)
    assert at_rest[0] == pytest.approx(10)
    assert at_rest[2] == pytest.approx(20, rel=0.01), "seen twice: in the middle between 10 and 40, as ratios go"
    assert at_rest[3] < 40


def test_one_bad_hour_counts_as_one_hour() -> None:
    rows = [{"hour": NOW - ago, "p95_ms": 60_000.0 if ago == 3 else 20.0} for ago in range(1, 13)]
    known = known_at(seen(*rows), NOW)
    assert known is not None
    assert known.curves.rest_ms == pytest.approx([10.0])


def test_a_node_that_is_gone_gets_nothing_and_one_without_latencies_is_in_the_middle() -> None:
    rows = [
        {"hour": NOW - 1, "node": "a"},
        {"hour": NOW - 1, "node": "new", "p95_ms": None, "attempts": 3},
        {"hour": NOW - GONE_HOURS - 1, "node": "gone"},
        {"hour": NOW - GONE_HOURS, "node": "almost"},
    ]
    known = known_at(seen(*rows), NOW)
    assert known is not None
    assert known.nodes == ("a", "almost", "new")
    assert known.curves.rest_ms == pytest.approx([10.0, 10.0, 10.0])


def test_a_capacity_that_latencies_speak_against_is_not_believed() -> None:
    per_second = np.linspace(5, 38, 60)
    slow = 25.0 / (1 - per_second / 40)
    sound = 25.0 / (1 - per_second / 100)
    weights = np.ones(60)
    assert fitted_capacity(per_second, slow, weights, 100.0) == pytest.approx(40, rel=0.06)
    assert fitted_capacity(per_second, sound, weights, 100.0) == pytest.approx(100)
    noisy = sound * np.random.default_rng(1).lognormal(0, 0.15, 60)
    assert fitted_capacity(per_second, noisy, weights, 100.0) == pytest.approx(100, rel=0.1)
    assert fitted_capacity(per_second[:1], slow[:1], weights[:1], 100.0) == 100.0


def test_what_is_learned_says_why() -> None:
    rows = [
        {"hour": NOW - ago, "node": name, "p95_ms": p95_ms, "failures": failures}
        for ago in (1, 2, HOURS_OF_WEEK)
        for name, p95_ms, failures in (("a", 20.0, 0), ("b", 40.0, 0), ("c", 20.0, 3_000))
    ]
    learned = learn(seen(*rows), NOW)
    assert learned is not None
    assert learned.hour == hour_of_week(NOW)
    a, b, c = learned.routes
    assert a.weight > b.weight > c.weight
    assert sum(learned.weights.values()) == pytest.approx(1)
    assert a.load == pytest.approx(a.weight * 150 / 100)
    assert a.expected_ms == pytest.approx(10 / (1 - a.load))
    assert a.messages == 18_000


def test_a_new_node_begins_with_little_and_what_was_that_of_others_is_shared() -> None:
    rows = [{"hour": NOW - 1, "node": name, "busy_per_second": 30.0} for name in ("a", "b", "new")]
    learned = learn(seen(*rows), NOW, {"a": 0.3, "b": 0.3, "gone": 0.4})
    assert learned is not None
    assert learned.weights == pytest.approx({"a": 0.475, "b": 0.475, "new": 0.05})
