"""Route weights, as a router hears them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sealane.errors import FormatTooNew, InvalidArgument
from sealane.routing.weights import RouteWeights, pick
from tests.fuzz.target import Target
from tests.fuzz.trees import VALUES, spoil_json

_MADE = datetime(2026, 1, 31, 12, tzinfo=UTC)
_SEEDS = tuple(
    RouteWeights(version=version, hour=hour, made=_MADE, valid_until=_MADE + timedelta(hours=3), weights=weights)
    for version, hour, weights in (
        (491_000, 132, {"*": {"a": 0.5, "b": 0.3, "c": 0.2}, "shop/orders": {"a": 1.0}}),
        (1, None, {"*": {"only": 1.0}}),
    )
)


def check(data: bytes) -> bool:
    try:
        heard = RouteWeights.from_bytes(data)
    except (InvalidArgument, FormatTooNew):
        return False
    for weights in heard.weights.values():
        assert pick(weights, 0.5) in weights
    assert RouteWeights.from_bytes(heard.to_bytes()) == heard
    return True


TARGET = Target(
    "route_weights",
    tuple(weights.to_bytes() for weights in _SEEDS),
    check,
    spoil_json((*VALUES, {"a": 0.5, "b": 0.5}, {"a": 1.0}, 1e-300, -0.0, "2026-01-31T12:00:00Z", "*")),
)
