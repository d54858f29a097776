"""Route weights: what a message of them may say, which version holds, and which node a message gets."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import FormatTooNew, InvalidArgument
from sealane.routing import weights as route_weights
from sealane.routing.weights import RouteWeights, check_weights, newest, pick, pick_for_hash, turn

NOW = datetime(2026, 1, 31, 12, 20, tzinfo=UTC)
THREE = {"a": 0.5, "b": 0.3, "c": 0.2}


def made(version: int = 491_000, **changes: Any) -> RouteWeights:
    said: dict[str, Any] = {
        "version": version,
        "hour": 132,
        "made": NOW,
        "valid_until": NOW + timedelta(hours=3),
        "weights": {"*": THREE, "shop/orders": {"a": 1.0}},
    }
    return RouteWeights(**{**said, **changes})


@st.composite
def shares(draw: st.DrawFn) -> dict[str, float]:
    parts = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=8))
    return {f"node-{at}": part / sum(parts) for at, part in enumerate(parts)}


# --- the message ------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_as_it_was_and_is_what_the_page_says() -> None:
    assert RouteWeights.from_bytes(made().to_bytes()) == made()
    assert msgspec.json.decode(made(hour=None, weights={"*": {"a": 1.0}}).to_bytes()) == {
        "format": 1,
        "version": 491_000,
        "hour": None,
        "made": "2026-01-31T12:20:00Z",
        "valid_until": "2026-01-31T15:20:00Z",
        "weights": {"*": {"a": 1.0}},
    }


def test_a_newer_format_is_told_apart_from_nonsense() -> None:
    with pytest.raises(FormatTooNew, match="upgrade"):
        RouteWeights.from_bytes(b'{"format": 2, "weights": "elsewhere"}')


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"format": 1}', b"\xff", b"[" * 100_000, b'{"format": 1, "version": "one"}'],
)
def test_bytes_that_are_no_weights_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        RouteWeights.from_bytes(data)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": -1}, "at least 0"),
        ({"hour": 168}, "from 0 to 167"),
        ({"made": NOW.replace(tzinfo=None)}, "time zone"),
        ({"weights": {"*": {}}}, "0 nodes"),
        ({"weights": {"*": {"a": 0.5, "b": 0.4}}}, "sum 0.9"),
        ({"weights": {"*": {"a": 1.5, "b": -0.5}}}, "from 0 to 1"),
    ],
)
def test_weights_that_nobody_could_follow_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        RouteWeights.from_bytes(made(**changes).to_bytes())


def test_a_weight_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="nan"):
        check_weights("*", {"a": float("nan"), "b": 1.0})


def test_limits_hold_at_their_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    most = route_weights.NODES_MAX
    check_weights("*", {str(node): 1 / most for node in range(most)})
    with pytest.raises(InvalidArgument, match="nodes"):
        check_weights("*", {str(node): 1 / (most + 1) for node in range(most + 1)})
    data = made().to_bytes()
    monkeypatch.setattr(route_weights, "WEIGHTS_BYTES_MAX", len(data))
    assert RouteWeights.from_bytes(data) == made()
    with pytest.raises(InvalidArgument, match="bytes"):
        RouteWeights.from_bytes(data + b" ")


# --- which holds ------------------------------------------------------------------------------------------------------


def test_a_router_ignores_what_is_not_newer() -> None:
    held = newest(None, made(7))
    assert held.version == 7
    assert newest(held, made(6)) is held
    assert newest(held, made(7)) is held
    assert newest(held, made(8)).version == 8


def test_weights_are_of_a_topic_or_of_all_and_expire() -> None:
    weights = made()
    assert weights.of("shop/orders", NOW) == {"a": 1.0}
    assert weights.of("shop/others", NOW) == THREE
    just_before = weights.valid_until - timedelta(microseconds=1)
    assert weights.of("shop/others", just_before) == THREE
    assert weights.of("shop/others", weights.valid_until) is None
    assert made(weights={"shop/orders": {"a": 1.0}}).of("shop/others", NOW) is None


# --- which node -------------------------------------------------------------------------------------------------------


@given(shares(), st.floats(0, 1, exclude_max=True))
def test_a_pick_is_one_of_the_nodes_and_the_same_in_any_order(weights: dict[str, float], u: float) -> None:
    turned = dict(reversed(weights.items()))
    assert pick(weights, u) == pick(turned, u)
    assert pick(weights, u) in weights
    key_hash = int(u * 2**64)
    assert pick_for_hash(weights, key_hash) == pick_for_hash(turned, key_hash)
    assert pick_for_hash(weights, key_hash) in weights


def test_each_node_gets_its_share_by_turns_by_chance_and_by_hash() -> None:
    count = 20_000
    by_turn = Counter(pick(THREE, turn(number)) for number in range(count))
    by_hash = Counter(pick_for_hash(THREE, number * 0x9E37_79B9_7F4A_7C15) for number in range(count))
    for node, weight in THREE.items():
        assert by_turn[node] == pytest.approx(count * weight, abs=5)
        assert by_hash[node] == pytest.approx(count * weight, rel=0.05)


def test_in_turn_a_node_gets_its_messages_at_even_distances() -> None:
    places = [number for number in range(2_000) if pick(THREE, turn(number)) == "c"]
    gaps = np.diff(places)
    assert set(gaps.tolist()) <= {3, 5, 8}  # With a fifth of all, chance would leave it out for thirty at a time.


def test_picks_by_hash_are_those_that_other_routers_make() -> None:
    # These must never change: routers of any age agree by them.
    assert [pick_for_hash(THREE, key_hash) for key_hash in (0, 1, 2, 3, 2**64 - 1)] == ["a", "a", "b", "b", "c"]


@given(shares(), st.data())
def test_when_weights_change_hashes_move_only_to_nodes_that_gain(
    weights: dict[str, float], data: st.DataObject
) -> None:
    gaining = data.draw(st.sampled_from(sorted(weights)))
    changed = {node: weight + (1.0 if node == gaining else 0.0) for node, weight in weights.items()}
    changed = {node: weight / 2 for node, weight in changed.items()}
    for key_hash in range(0, 2**64, 2**58):
        before, after = pick_for_hash(weights, key_hash), pick_for_hash(changed, key_hash)
        assert after in (before, gaining)


def test_a_small_change_moves_few() -> None:
    changed = {"a": 0.48, "b": 0.3, "c": 0.22}
    count = 20_000
    moved = sum(pick_for_hash(THREE, number) != pick_for_hash(changed, number) for number in range(count))
    assert moved / count == pytest.approx(0.02, abs=0.01)


def test_a_node_that_cannot_be_reached_leaves_the_others_what_they_had() -> None:
    for number in range(500):
        before, after = pick_for_hash(THREE, number), pick_for_hash(THREE, number, without={"a"})
        assert after == before or before == "a"
    count = 8_000
    rest = Counter(pick(THREE, turn(number), without={"a"}) for number in range(count))
    assert rest["b"] == pytest.approx(count * 0.6, abs=5)
    assert pick(THREE, 0.5, without=THREE) is None
    assert pick_for_hash(THREE, 1, without=THREE) is None


def test_who_has_no_weight_gets_nothing() -> None:
    weights = {"a": 1.0, "b": 0.0}
    assert {pick(weights, number / 100) for number in range(100)} == {"a"}
    assert {pick_for_hash(weights, number) for number in range(100)} == {"a"}
