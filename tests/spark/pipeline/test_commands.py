"""`sealane pipeline`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from sealane.cli.main import app
from sealane.pipeline.lake.tables import RAW_HISTORY, Lake
from sealane.testing.node_process import NodeProcess
from tests.spark.consuming import consume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane


class Typed:
    """Commands on one lake; Spark's session is that of the tests, since its start takes longer than all of them."""

    def __init__(self, node: NodeProcess, lake: Path, topic: str) -> None:
        self.lake = lake
        self._environment = {
            "SEALANE_URL": node.url,
            "SEALANE_DATA": str(lake.parent / "data"),  # Where the lake's keys go.
            "SEALANE_PIPELINE__LAKE": str(lake),
            "SEALANE_PIPELINE__TOPICS": topic,
        }

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["pipeline", *arguments], env=self._environment)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        return json.loads(done.stdout)


@pytest.fixture
def typed(spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path) -> Typed:
    return Typed(node, tmp_path / "lake", topic)


def test_from_a_run_to_tables_a_question_and_a_proof(typed: Typed, lane: SyncLane, topic: str) -> None:
    assert "no tables yet" in typed.run("status").output
    lane.publish_many(topic, [b"%d" % number for number in range(40)])
    consume(lane, topic, 30)
    done = typed.run("run", "--once")
    assert (done.exit_code, "40 messages" in done.output) == (0, True), done.output
    assert {each["table"]: each["rows"] for each in typed.json("status")["tables"]}["raw/messages"] == 40
    asked = "SELECT outcome, count(*) AS messages FROM deliveries GROUP BY outcome"
    assert typed.json("sql", asked) == [{"outcome": "acked", "messages": 30}]
    proof = typed.json("reconcile")
    assert (proof["holds"], proof["problems"]) == (True, [])
    (row,) = proof["balance"]
    assert (row["published"], row["acked"], row["in_flight"]) == (40, 30, 10)
    # All of them were created within the last hour.
    assert typed.json("reconcile", "--until", "1h") == {"holds": True, "balance": [], "problems": []}


def test_a_loss_is_named_and_ends_with_its_code(typed: Typed, lane: SyncLane, topic: str, spark: SparkSession) -> None:
    receipts = lane.publish_many(topic, [b"%d" % number for number in range(20)])
    consume(lane, topic, 20)
    assert typed.run("run", "--once").exit_code == 0
    _forget_the_ack_of(spark, Lake(typed.lake), 7)
    done = typed.run("reconcile")
    assert done.exit_code == 10, done.output
    assert "missing" in done.output
    assert receipts[7].id.hex in done.output


def _forget_the_ack_of(spark: SparkSession, lake: Lake, offset: int) -> None:
    """Write the history again, without a word on this message's end."""
    history = spark.read.parquet(str(lake.path(RAW_HISTORY)))
    acked = f"event = 'acked' AND first <= {offset} AND stop > {offset}"
    others = history.where(f"NOT coalesce({acked}, false)")
    before = history.where(f"{acked} AND first < {offset}").withColumn("stop", _lit(offset))
    after = history.where(f"{acked} AND stop > {offset + 1}").withColumn("first", _lit(offset + 1))
    rows = others.unionByName(before).unionByName(after).toArrow()
    files = lake.files(RAW_HISTORY)
    spark.createDataFrame(rows).drop("domain", "topic", "date").coalesce(1).write.parquet(str(lake.root / "spoiled"))
    for path in files[1:]:
        path.unlink()
    (spoiled,) = (lake.root / "spoiled").glob("*.parquet")
    spoiled.replace(files[0])


def _lit(value: int) -> Any:
    from pyspark.sql import functions as f

    return f.lit(value).cast("bigint")


def test_what_cannot_be_asked_is_told(typed: Typed) -> None:
    done = typed.run("run", "--once", "--bodies", "all")
    assert done.exit_code == 2
    assert "is not left-out, sealed or plain" in done.output
