"""A generated month, whose seeds nothing was tuned on: what was planted is found, and hardly anything else."""

from __future__ import annotations

import pytest

from sealane.pipeline.anomalies.detecting import detect
from tests.unit.pipeline.anomalies.generated import BINS, FIRST, WATCHED, Generated, month, tally

RECALL_LEAST = 0.95
FALSE_MOST = 1.0


def found_by_baseline(generated: Generated) -> list[tuple[int, int]]:
    findings = detect(generated.series, generated.measure, WATCHED, FIRST + BINS)
    return [(each.first, each.stop) for each in findings if each.kind == "baseline"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_anomalies_are_found_with_at_most_one_false_alarm_a_series_and_week(seed: int) -> None:
    found = tally(month(seed), found_by_baseline)
    print(
        f"seed {seed}: recall {found.recall:.3f} of {found.planted} planted; false alarms a series and week: "
        f"{found.false_a_series_week:.3f} on average, {found.false_of_worst_series:.2f} of the worst series; "
        f"missed: {found.missed}"
    )
    assert found.recall >= RECALL_LEAST, found.missed
    assert found.false_of_worst_series <= FALSE_MOST, found.false_by_series
