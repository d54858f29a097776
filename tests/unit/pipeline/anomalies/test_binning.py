"""Depth is carried from the days that are kept to those that are new."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from sealane.pipeline.anomalies.binning import COLUMNS, TOPIC, with_depth

NOTHING = pd.DataFrame(columns=list(COLUMNS))


def rows(*some: tuple[str, int, int, int, int | None]) -> Any:
    """Of subscriptions and bins: what was published, what was settled, and by how much more there is to do."""
    found = [("default", "orders", *each[:4], 0, None, each[4]) for each in some]
    names = [name for name in COLUMNS if name != "depth"]
    return pd.DataFrame(found, columns=[*names, "change"]).astype({"change": float})


def depths(frame: Any, subscription: str) -> list[float]:
    return [float(each) for each in frame[frame["subscription"] == subscription]["depth"]]


def test_depth_is_what_came_for_a_subscription_and_was_not_settled() -> None:
    some = [(TOPIC, 1, 10, 0, None), ("billing", 1, 0, 4, 6), ("billing", 3, 0, 5, -5), (TOPIC, 4, 2, 0, None)]
    found = with_depth(rows(*some, ("billing", 4, 0, 0, 2)), NOTHING)
    assert depths(found, "billing") == [6, 1, 3]
    assert depths(found, TOPIC) == [10, 10, 12]


def test_what_was_there_before_a_subscription_is_not_for_it_to_do() -> None:
    found = with_depth(rows((TOPIC, 1, 10, 0, None), (TOPIC, 2, 5, 0, None), ("late", 2, 0, 1, 2)), NOTHING)
    assert depths(found, "late") == [0, 2]


def test_it_goes_on_where_the_bins_before_have_left_it() -> None:
    before = with_depth(rows((TOPIC, 1, 10, 0, None), ("billing", 1, 0, 4, 6)), NOTHING)
    opening = pd.DataFrame([("default", "orders", "audit", 10)], columns=["domain", "topic", "subscription", "depth"])
    new = rows((TOPIC, 9, 3, 0, None), ("billing", 9, 0, 0, 3), ("audit", 9, 0, 5, -2), ("late", 9, 0, 0, 3))
    found = with_depth(new, before, opening)
    assert depths(found, "billing") == [9]
    assert depths(found, "audit") == [8]  # It is new, and began with the log.
    assert depths(found, "late") == [3]  # It is new, and began at the end.
    assert depths(found, TOPIC) == [13]


def test_where_nobody_says_what_is_for_it_depth_is_not_known() -> None:
    found = with_depth(rows((TOPIC, 1, 10, 0, None), ("choosy", 1, 0, 4, None)), NOTHING)
    assert [math.isnan(each) for each in depths(found, "choosy")] == [True]


def test_a_topic_without_a_new_message_has_no_new_bins() -> None:
    before = with_depth(rows((TOPIC, 1, 10, 0, None)), NOTHING)
    assert with_depth(rows(), before).empty
