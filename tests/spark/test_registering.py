"""One line makes `format("sealane")` known: to a session of Spark's own making, and to none that is too old for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import sealane
from sealane.errors import InvalidArgument
from sealane.spark import register
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As in a notebook: a session that Spark's own builder makes, where nobody has said which Python workers run on.
NOTEBOOK = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import sealane.spark

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert sealane.spark.register(spark) is spark
rows = spark.read.format("sealane").option("url", sys.argv[1]).load("notebook")
python = udf(lambda _: sys.executable, "string")
print(json.dumps([[row.payload.decode(), row.python] for row in rows.withColumn("python", python("offset")).collect()]))
spark.stop()
"""


@pytest.fixture
def lane(node: NodeProcess) -> Iterator[sealane.SyncLane]:
    with sealane.connect_sync(node.url) as lane:
        yield lane


def test_a_notebook_needs_one_line(java: None, node: NodeProcess, lane: sealane.SyncLane, tmp_path: Path) -> None:
    lane.publish("notebook", b"hello")
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, node.url],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={
            name: value for name, value in os.environ.items() if name not in {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
        },
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["hello", sys.executable]]


def test_registering_again_changes_nothing(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    lane.publish(topic, b"hello")

    assert register(register(spark)) is spark

    assert spark.read.format("sealane").option("url", node.url).load(topic).count() == 1


@pytest.mark.parametrize("version", ["3.5.6", "4.1.2"])
def test_a_spark_that_is_too_old_is_refused(version: str) -> None:
    session = cast("Any", SimpleNamespace(version=version))

    with pytest.raises(InvalidArgument, match=rf"spark: this session is of Spark {version}, and Sealane needs 4\.2"):
        register(session)


def test_secrets_among_the_options_are_in_no_plan(spark: SparkSession, node: NodeProcess, topic: str) -> None:
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(topic)
    rows = spark.read.format("sealane").options(url=node.url, key="CANARY-key", token="CANARY-token")

    plan = rows.load(topic)._jdf.queryExecution().toString()

    assert "sealane" in plan
    assert "CANARY" not in plan
