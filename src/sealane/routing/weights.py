"""Learned weights: how much of the messages without a key each node gets, until when, and which node one message gets.

The messages that carry them are a contract (docs/routes.md), and so is the way to pick: routers of one version pick the
same node for the same message.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec
import xxhash

from sealane.errors import FormatTooNew, InvalidArgument

ANY_TOPIC = "*"
"""Weights for every topic that has none of its own."""
HOURS_OF_WEEK = 168
NODES_MAX = 10_000
"""Nodes of one topic's weights: a pick looks at each."""
WEIGHTS_BYTES_MAX = 8 << 20
"""Of one message of weights."""

GOLDEN = (5**0.5 - 1) / 2
"""Steps of this length go round a circle more evenly than any others."""

_FORMAT = 1
_SUM_TOLERANCE = 1e-6

Weights = Mapping[str, float]
"""Of each node, its share. They are between 0 and 1, and their sum is 1."""


class RouteWeights(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the weights, as it is published."""

    format: int = _FORMAT
    version: int
    """The hour that they are for, in whole hours since 1970. Who has heard of one ignores all that are lower."""
    hour: int | None
    """The hour of the week (UTC, from Monday 00:00) that they were learned for; none while no such hour is known."""
    made: datetime
    valid_until: datetime
    """From then on they say nothing, and routers hash as they do without them."""
    weights: dict[str, dict[str, float]]
    """By topic (`domain/topic`, or `*` for all others), each node's."""

    def of(self, topic: str, now: datetime) -> Weights | None:
        """The weights of a topic, none when they have expired: then routers use static hashing."""
        if now >= self.valid_until:
            return None
        return self.weights.get(topic) or self.weights.get(ANY_TOPIC)

    def to_bytes(self) -> bytes:
        """As JSON, in UTF-8, the same bytes for the same weights."""
        return msgspec.json.encode(self, order="deterministic")

    @classmethod
    def from_bytes(cls, data: bytes) -> RouteWeights:
        """What `to_bytes` made, checked; `FormatTooNew` or `InvalidArgument` for anything else."""
        if len(data) > WEIGHTS_BYTES_MAX:
            raise InvalidArgument("weights", f"have {len(data):,} bytes, the limit is {WEIGHTS_BYTES_MAX:,}")
        try:
            found = msgspec.json.decode(data, type=_Formatted)
            if found.format > _FORMAT:
                raise FormatTooNew("the message of route weights", found.format, _FORMAT)
            weights = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidArgument("weights", f"cannot be read: {error}") from None
        weights.check()
        return weights

    def check(self) -> None:
        """Raise `InvalidArgument` for what no router could follow."""
        if self.version < 0:
            raise InvalidArgument("version", f"is {self.version}, at least 0")
        if self.hour is not None and not 0 <= self.hour < HOURS_OF_WEEK:
            raise InvalidArgument("hour", f"is {self.hour}, hours of the week go from 0 to {HOURS_OF_WEEK - 1}")
        for name, moment in (("made", self.made), ("valid_until", self.valid_until)):
            if moment.tzinfo is None:
                raise InvalidArgument(name, "says no time zone; end it with Z")
        for topic, weights in self.weights.items():
            check_weights(topic, weights)


class _Formatted(msgspec.Struct):
    format: int


def check_weights(topic: str, weights: Weights) -> None:
    """Raise `InvalidArgument` unless they are shares of a whole."""
    if not 0 < len(weights) <= NODES_MAX:
        raise InvalidArgument("weights", f"of {topic!r} are of {len(weights):,} nodes, from 1 to {NODES_MAX:,}")
    wrong = next((node for node, weight in weights.items() if not 0 <= weight <= 1), None)
    if wrong is not None:
        raise InvalidArgument("weights", f"of {topic!r}: that of {wrong!r} is {weights[wrong]}, from 0 to 1")
    total = math.fsum(weights.values())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InvalidArgument("weights", f"of {topic!r} have the sum {total:.9f}, it must be 1")


def newest(held: RouteWeights | None, heard: RouteWeights) -> RouteWeights:
    """What a router holds on to when it hears of weights. They may come late, twice, and in any order."""
    return heard if held is None or heard.version > held.version else held


def pick(weights: Weights, u: float, without: Collection[str] = ()) -> str | None:
    """The node for a number from 0 up to, and without, 1. With even numbers each node gets its share.

    `without` are nodes that cannot be reached now: the others share what was theirs, by their weights. None: nobody
    is left.
    """
    reached = [(node, weights[node]) for node in sorted(weights) if weights[node] > 0 and node not in without]
    below = u * math.fsum(weight for _, weight in reached)
    for node, weight in reached:
        below -= weight
        if below < 0:
            return node
    return reached[-1][0] if reached else None  # What rounding has left over.


def turn(number: int) -> float:
    """What to `pick` by for a router's message of this number, so that nodes come in turn: round robin with weights. A
    node then gets its messages at even distances, which makes its queue shorter than chance does.
    """
    return number * GOLDEN % 1.0


def pick_for_hash(weights: Weights, key_hash: int, without: Collection[str] = ()) -> str | None:
    """The node for a hash of 64 bits: the same one each time, and each node gets its share of all hashes.

    Weighted rendezvous hashing: when weights change, hashes move from nodes that lose to nodes that gain, and as many
    as that takes; when a node is `without`, only its own move.
    """
    best, best_score = None, -1.0
    for node in sorted(weights):
        if weights[node] > 0 and node not in without:
            drawn = xxhash.xxh3_64_intdigest(node.encode(), key_hash & 0xFFFF_FFFF_FFFF_FFFF)
            # Of the 64 bits, as many as a float has, and never 0 or 1.
            score = weights[node] / -math.log(((drawn >> 12) + 0.5) / (1 << 52))
            if score > best_score:
                best, best_score = node, score
    return best
