"""Route weights by Spark: from telemetry to a version in the table and in the topic, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sealane.pipeline.lake.tables import ROUTE_WEIGHTS, Lake
from sealane.pipeline.routes.hours import seen_by_spark
from sealane.pipeline.routes.publishing import publish_weights
from sealane.pipeline.routes.recording import begins
from sealane.pipeline.routes.seeing import seen_in
from sealane.pipeline.routes.telemetry import TELEMETRY_SCHEMA, TELEMETRY_TOPIC
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.routes import refresh_routes
from sealane.routing.weights import ANY_TOPIC, RouteWeights
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sealane.client.sync import SyncLane

RECORDED = Path(__file__).parents[2] / "unit" / "pipeline" / "routes" / "telemetry.parquet"


@pytest.fixture(scope="module")
def recorded() -> pa.Table:
    return pq.read_table(RECORDED, schema=TELEMETRY_SCHEMA)


@pytest.fixture(scope="module")
def telemetry(spark: SparkSession, recorded: pa.Table) -> DataFrame:
    return spark.createDataFrame(recorded).coalesce(1)


@pytest.fixture(scope="module")
def after(recorded: pa.Table) -> datetime:
    """Twenty minutes after the last hour that was recorded."""
    last: datetime = max(recorded["minute"].to_pylist())
    return last + timedelta(hours=1, minutes=20)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def settings(lake: Lake, node: NodeProcess) -> PipelineSettings:
    return PipelineSettings(lake=lake.root, url=node.url)


def rows(lake: Lake) -> list[dict[str, Any]]:
    """As any tool reads them."""
    return ds.dataset(lake.path(ROUTE_WEIGHTS), format="parquet", partitioning="hive").to_table().to_pylist()


def test_spark_sees_in_the_recording_what_the_oracle_sees(telemetry: DataFrame, recorded: pa.Table) -> None:
    expected = seen_in(recorded)
    hours = expected["hour"].to_pylist()
    found = seen_by_spark(telemetry, min(hours), max(hours) + 1)
    for ours, theirs in zip(found.to_pylist(), expected.to_pylist(), strict=True):
        # A percentile that is between two buckets may be told as either of them.
        assert ours.pop("p95_ms") == pytest.approx(theirs.pop("p95_ms"), rel=0.2)
        assert ours == pytest.approx(theirs)


def test_rows_that_cannot_be_are_left_out(spark: SparkSession, recorded: pa.Table) -> None:
    sound = recorded.slice(0, 1).to_pylist()[0]
    wrong: list[dict[str, Any]] = [
        {"format": 2},
        {"target": None},
        {"attempts": 0, "failures": 0},
        {"failures": sound["attempts"] + 1},
        {"target_capacity_per_second": float("nan")},
        {"target_capacity_per_second": 0.0},
        {"target_per_second": None},
    ]
    odd = {"origin": "edge-9", "latency_counts": [-1, None]}
    table = pa.Table.from_pylist([sound, *({**sound, **each} for each in [*wrong, odd])], schema=TELEMETRY_SCHEMA)
    hour = int(sound["minute"].timestamp()) // 3600
    (seen,) = seen_by_spark(spark.createDataFrame(table), hour, hour + 1).to_pylist()
    assert (seen["node"], seen["attempts"]) == (sound["target"], 2 * sound["attempts"])
    (alone,) = seen_in(table.slice(0, 1)).to_pylist()
    assert seen["p95_ms"] == pytest.approx(alone["p95_ms"], rel=0.2)


def test_a_version_is_made_once_and_the_next_one_goes_on_from_it(
    spark: SparkSession, telemetry: DataFrame, lake: Lake, settings: PipelineSettings, after: datetime
) -> None:
    made = refresh_routes(spark, lake, settings, now=after, telemetry=telemetry)
    assert made is not None
    assert made.version == int(after.timestamp()) // 3600
    assert made.valid_until == begins(made.version) + timedelta(hours=3)
    assert RouteWeights.from_bytes(made.to_bytes()) == made
    again = refresh_routes(spark, lake, settings, now=after + timedelta(minutes=30), telemetry=telemetry)
    assert again == made
    first = rows(lake)
    assert {row["node"]: row["weight"] for row in first} == made.weights[ANY_TOPIC]
    assert {row["version"] for row in first} == {made.version}
    assert all(row["expected_ms"] > 0 and 0 < row["load"] < 1 and row["messages"] > 0 for row in first)
    # The next hour has no new telemetry: what was seen is remembered, and the weights go on from those of this hour.
    nothing = telemetry.limit(0)
    following = refresh_routes(spark, lake, settings, now=after + timedelta(hours=1), telemetry=nothing)
    assert following is not None
    assert following.version == made.version + 1
    assert len(rows(lake)) == 2 * len(first)
    # The first node is the smallest of the recording: step by step it gets less.
    small = "node-1"
    assert following.weights[ANY_TOPIC][small] < made.weights[ANY_TOPIC][small] < 1 / len(first)


def test_without_telemetry_there_is_nothing_to_publish(
    spark: SparkSession, telemetry: DataFrame, lake: Lake, settings: PipelineSettings, after: datetime
) -> None:
    assert refresh_routes(spark, lake, settings, now=after, telemetry=telemetry.limit(0)) is None
    assert not lake.exists(ROUTE_WEIGHTS)


def test_from_the_telemetry_topic_to_the_topic_of_weights(
    spark: SparkSession, lane: SyncLane, lake: Lake, settings: PipelineSettings, recorded: pa.Table, after: datetime
) -> None:
    # The node stores messages at its own time, so the recording is told as that of the last hours.
    now = datetime.now(UTC).replace(minute=20)
    told = [{**row, "minute": row["minute"] + (now - after)} for row in recorded.to_pylist()]
    assert refresh_routes(spark, lake, settings, now=now) is None
    lane.publish_many(TELEMETRY_TOPIC, [b"no telemetry", *map(msgspec.json.encode, told)])
    made = refresh_routes(spark, lake, settings, now=now)
    assert made is not None
    publish_weights(lane, made)
    publish_weights(lane, made)
    assert [RouteWeights.from_bytes(payload) for payload in _payloads(lane)] == [made]


def _payloads(lane: SyncLane) -> list[bytes]:
    return [bytes(payload) for stored in lane.browse("_system/routes") for payload in stored.batch.payloads()]
