"""Telemetry: buckets of latency, and what is seen in a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.routes.curves import LOOKBACK_HOURS, NODE_HOURS
from sealane.pipeline.routes.learning import learn
from sealane.pipeline.routes.remembering import KEPT, added, remember, remembered
from sealane.pipeline.routes.seeing import seen_in
from sealane.pipeline.routes.telemetry import BUCKETS, TELEMETRY_SCHEMA, bucket_of, counts_of, percentile_ms

RECORDED = Path(__file__).parent / "telemetry.parquet"


@pytest.fixture(scope="module")
def recorded() -> pa.Table:
    return pq.read_table(RECORDED, schema=TELEMETRY_SCHEMA)


def test_a_percentile_is_off_by_no_more_than_half_a_bucket() -> None:
    latencies_ms = np.random.default_rng(1).lognormal(2, 1.5, 10_000)
    counts = counts_of(latencies_ms)
    assert sum(counts) == 10_000
    for share in (0.5, 0.95, 0.99):
        assert percentile_ms(counts, share) == pytest.approx(np.percentile(latencies_ms, 100 * share), rel=0.1)


def test_the_first_bucket_and_the_last_take_all_beyond_them() -> None:
    assert bucket_of(np.array([0.0, 0.125, 0.126, 1e9])).tolist() == [0, 0, 1, BUCKETS - 1]
    assert counts_of(np.array([])) == []
    assert np.isnan(percentile_ms([], 0.5))


def test_a_recording_tells_of_every_node_and_hour_and_can_be_learned_from(recorded: pa.Table) -> None:
    seen = seen_in(recorded)
    hours = set(seen["hour"].to_pylist())
    assert len(seen) == 6 * len(hours)
    assert sum(seen["attempts"].to_pylist()) == sum(recorded["attempts"].to_pylist())
    learned = learn(seen, max(hours) + 1)
    assert learned is not None
    weights = learned.weights
    # They were recorded from the smallest to the largest, the two in the middle alike.
    assert weights["node-1"] < weights["node-2"] < weights["node-3"] < weights["node-5"] <= weights["node-6"]


def test_what_came_beside_the_routes_is_told_apart(recorded: pa.Table) -> None:
    rows = recorded.slice(0, 2).to_pylist()
    assert rows[0]["target"] == rows[1]["target"], "two origins tell of the same node"
    keyed = [{**row, "target_per_second": row["target_per_second"] + 7.0} for row in rows]
    (seen,) = seen_in(pa.Table.from_pylist(keyed, schema=TELEMETRY_SCHEMA)).to_pylist()
    assert seen["other_per_second"] == pytest.approx(7.0)
    assert seen["per_second"] == pytest.approx((rows[0]["attempts"] + rows[1]["attempts"]) / 60)


def test_rows_of_a_newer_format_are_left_out(recorded: pa.Table) -> None:
    newer = recorded.set_column(0, "format", pa.array([2] * len(recorded), pa.int32()))
    assert len(seen_in(newer)) == 0


def test_what_was_seen_is_remembered_from_version_to_version(recorded: pa.Table, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    seen = seen_in(recorded)
    assert remembered(lake, 5) == NODE_HOURS.empty_table()
    for version in (3, 4, 5):
        remember(lake, version, seen.slice(0, version))
    assert len(remembered(lake, 5)) == 4, "one that is made again begins as it began"
    assert len(remembered(lake, 9)) == 5
    assert len(list((lake.root / "state" / "routes").iterdir())) == KEPT


def test_what_is_new_takes_the_place_of_what_was_known_of_that_hour(recorded: pa.Table) -> None:
    seen = seen_in(recorded)
    hour = seen["hour"][0].as_py()
    news = seen.slice(0, 1).set_column(2, "attempts", pa.array([1], pa.int64()))
    both = added(seen, news, hour + 1)
    assert len(both) == len(seen)
    assert both["attempts"].to_pylist().count(1) == 1
    assert len(added(seen, news, hour + LOOKBACK_HOURS + 1)) == len(seen) - 6 + 1, "the first hour is too long ago"
