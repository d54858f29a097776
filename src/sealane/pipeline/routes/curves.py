"""What is known of each node from what was seen of it, hour by hour: how it answers at which load, and how often not.

An hour of the week is known by as many hours as there are weeks, so its estimate is drawn to that of the last days, the
more the less it rests on. Medians make one bad hour count as one hour, however bad it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sealane.pipeline.routes.balancing import Curves
from sealane.routing.weights import HOURS_OF_WEEK

LOOKBACK_HOURS = 5 * HOURS_OF_WEEK
"""Each hour of the week five times: what is older is of other machines."""
RECENT_HALF_LIFE_HOURS = 24.0
"""Of the estimate that an hour's own is drawn to: what was an hour ago counts twice as much as what was yesterday."""
SHRINKAGE_HOURS = 2.0
"""An hour of the week that was seen twice counts as much as the last days."""
GONE_HOURS = 24
"""A node that nothing was heard of for so long is not given anything: it will be told of when it is back."""
SUCCESSES_FEW = 20
"""An hour with fewer says nothing of latency: its 95th percentile would be that of one message."""

_SHARES_TRIED = np.geomspace(0.1, 1.0, 47)
"""Of the capacity that a node says it has, how much it may really have."""
_DOUBT = 0.1
"""How much better a capacity must explain what was seen, for each halving of the one that the node says."""
_LOAD_SEEN = 0.97
"""Latencies at a higher load are those of a queue that grows: they tell nothing more about it."""

NODE_HOURS = pa.schema(
    [
        ("hour", pa.int64()),
        ("node", pa.string()),
        ("attempts", pa.int64()),
        ("failures", pa.int64()),
        ("per_second", pa.float64()),
        ("busy_per_second", pa.float64()),
        ("other_per_second", pa.float64()),
        ("capacity_per_second", pa.float64()),
        ("p95_ms", pa.float64()),
    ]
)
"""What was seen of a node in one hour: `hour` counts from 1970, `per_second` and, in busy minutes, `busy_per_second`
are what was routed to it, `other_per_second` what came to it beside that.
"""


@dataclass(frozen=True, slots=True)
class Known:
    """Of the nodes, in the order of their names."""

    nodes: tuple[str, ...]
    curves: Curves
    per_second: float
    """What is to be routed in a busy minute of the hour."""
    messages: np.ndarray
    """How many attempts what is known of each node rests on."""
    hours_seen: int
    """How often this hour of the week was seen; 0: all that is known is of other hours."""


def hour_of_week(hour: int) -> int:
    """From 0, Monday 00:00 UTC, to 167. The first day of 1970 was a Thursday."""
    return (hour + 3 * 24) % HOURS_OF_WEEK


def known_at(seen: pa.Table, hour: int) -> Known | None:
    """What is known for an hour from what was seen in the hours before it; None if that is nothing."""
    # Arrow would filter such small tables more slowly than numpy has computed all of this.
    columns = {name: seen[name].to_numpy() for name in NODE_HOURS.names}
    within = (columns["hour"] < hour) & (columns["hour"] >= hour - LOOKBACK_HOURS)
    lately = within & (columns["hour"] >= hour - GONE_HOURS)
    nodes = sorted(set(columns["node"][lately]))
    found = []
    for node in nodes:
        rows = within & (columns["node"] == node)
        found.append(_of_node({name: column[rows] for name, column in columns.items()}, hour))
    if not nodes or not any(each.rest_ms > 0 for each in found):
        return None
    rest_ms = np.array([each.rest_ms for each in found])
    # A node of which no latency is known yet is taken for one in the middle.
    rest_ms = np.where(rest_ms > 0, rest_ms, np.median(rest_ms[rest_ms > 0]))
    return Known(
        tuple(nodes),
        Curves(
            rest_ms,
            np.array([each.capacity_per_second for each in found]),
            np.array([each.other_per_second for each in found]),
            np.array([each.failing for each in found]),
        ),
        float(sum(each.busy_per_second for each in found)),
        np.array([each.messages for each in found]),
        max(each.hours_seen for each in found),
    )


@dataclass(frozen=True, slots=True)
class _NodeKnown:
    rest_ms: float
    capacity_per_second: float
    other_per_second: float
    failing: float
    busy_per_second: float
    messages: int
    hours_seen: int


def _of_node(seen: dict[str, np.ndarray], hour: int) -> _NodeKnown:
    recent = 0.5 ** ((hour - seen["hour"]) / RECENT_HALF_LIFE_HOURS)
    same = ((seen["hour"] - hour) % HOURS_OF_WEEK == 0).astype(float)
    timed = np.isfinite(seen["p95_ms"]) & (seen["attempts"] - seen["failures"] >= SUCCESSES_FEW)
    said = float(seen["capacity_per_second"][np.argmax(seen["hour"])])
    asked = seen["per_second"] + seen["other_per_second"]
    capacity = fitted_capacity(asked[timed], seen["p95_ms"][timed], recent[timed], said)
    at_rest = np.log(seen["p95_ms"][timed] * (1 - np.minimum(asked[timed] / capacity, _LOAD_SEEN)))
    hours_timed = float(same[timed].sum())
    rest = _drawn(at_rest, same[timed], recent[timed], hours_timed) if timed.any() else -np.inf
    hours_seen = float(same.sum())
    failed = _ratio(seen["failures"], seen["attempts"], recent)
    failed_then = _ratio(seen["failures"], seen["attempts"], same)
    return _NodeKnown(
        rest_ms=float(np.exp(rest)),
        capacity_per_second=capacity,
        other_per_second=_drawn(seen["other_per_second"], same, recent, hours_seen),
        failing=_towards(failed_then, failed, hours_seen),
        busy_per_second=_drawn(seen["busy_per_second"], same, recent, hours_seen),
        messages=int(seen["attempts"].sum()),
        hours_seen=int(hours_seen),
    )


def fitted_capacity(per_second: np.ndarray, latency_ms: np.ndarray, weights: np.ndarray, said: float) -> float:
    """The capacity by which latencies at these rates are explained best, at most what the node says that it has.

    A node that has become slow says what it could do once. For each capacity the curve is put through the middle of
    what was seen, and the sum of what is off, as ratios, decides; without a reason to doubt it, the node's word holds.
    """
    if len(per_second) < 2:
        return said
    tried = said * _SHARES_TRIED
    rest = np.log(latency_ms) + np.log1p(-np.minimum(per_second / tried[:, None], _LOAD_SEEN))
    order = np.argsort(rest, axis=1)
    reached = np.cumsum(weights[order], axis=1)
    at_middle = np.argmax(reached >= reached[:, -1:] / 2, axis=1)
    middles = np.take_along_axis(rest, order, axis=1)[np.arange(len(tried)), at_middle]
    off = (np.abs(rest - middles[:, None]) * weights).sum(axis=1) / weights.sum()
    return float(tried[np.argmin(off - _DOUBT * np.log2(_SHARES_TRIED))])


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The value that has half of the weight below it."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _drawn(values: np.ndarray, same: np.ndarray, recent: np.ndarray, hours: float) -> float:
    """The median of the same hours of the week, drawn to that of the last days."""
    lately = weighted_median(values, recent)
    return _towards(weighted_median(values, same) if hours else lately, lately, hours)


def _towards(then: float, lately: float, hours: float) -> float:
    return (hours * then + SHRINKAGE_HOURS * lately) / (hours + SHRINKAGE_HOURS)


def _ratio(part: np.ndarray, whole: np.ndarray, weights: np.ndarray) -> float:
    total = float((whole * weights).sum())
    return float((part * weights).sum()) / total if total > 0 else 0.0
