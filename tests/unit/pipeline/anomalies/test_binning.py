"""Depth is carried from the days that are kept to those that are new."""

from __future__ import annotations

from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from sealane.pipeline.anomalies.binning import COLUMNS, TOPIC, with_depth

NOTHING = pd.DataFrame(columns=list(COLUMNS))


def rows(*some: tuple[str, int, int, int]) -> Any:
    """Of subscriptions and bins: what was published, and what was settled."""
    found = [("default", "orders", *each, 0, None) for each in some]
    return pd.DataFrame(found, columns=[name for name in COLUMNS if name != "depth"])


def depths(frame: Any, subscription: str) -> list[float]:
    return [float(each) for each in frame[frame["subscription"] == subscription]["depth"]]


def test_depth_is_what_was_published_and_not_settled() -> None:
    found = with_depth(rows((TOPIC, 1, 10, 0), ("billing", 1, 0, 4), ("billing", 3, 0, 5), (TOPIC, 4, 2, 0)), NOTHING)
    assert depths(found, "billing") == [6, 1, 3]
    assert depths(found, TOPIC) == [10, 10, 12]


def test_it_goes_on_where_the_bins_before_have_left_it() -> None:
    before = with_depth(rows((TOPIC, 1, 10, 0), ("billing", 1, 0, 4)), NOTHING)
    found = with_depth(rows((TOPIC, 9, 3, 0), ("audit", 9, 0, 5)), before)
    assert depths(found, "billing") == [9]  # It has settled nothing since, and is there all the same.
    assert depths(found, "audit") == [8]
    assert depths(found, TOPIC) == [13]


def test_a_topic_without_a_new_message_has_no_new_bins() -> None:
    before = with_depth(rows((TOPIC, 1, 10, 0)), NOTHING)
    assert with_depth(rows(), before).empty
