"""One line makes `format("sealane")` known: to a session of Spark's own making, and to none that is too old for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyspark
import pytest

import sealane
from sealane.client.profiles import read_profile
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

# As a file that is submitted: where it runs is not its own to say.
SUBMITTED = """
import json, sys
import sealane.spark

spark = sealane.spark.session("ours", spark_sql_shuffle_partitions=3)
rows = spark.read.format("sealane").option("url", sys.argv[1]).load("submitted").count()
settings = [spark.conf.get(name) for name in ("spark.app.name", "spark.sql.shuffle.partitions", "spark.ui.enabled")]
print(json.dumps([rows, spark.sparkContext.master, *settings]))
spark.stop()
"""


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


def test_a_session_under_spark_submit_is_where_that_was_told_to_be(
    java: None, node: NodeProcess, lane: sealane.SyncLane, tmp_path: Path
) -> None:
    lane.publish("submitted", b"hello")
    program = tmp_path / "program.py"
    program.write_text(SUBMITTED)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [str(submit), "--master", "local[1]", "--name", "theirs", str(program), node.url],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [1, "local[1]", "theirs", "3", "false"]


def test_registering_again_changes_nothing(
    spark: SparkSession, node: NodeProcess, lane: sealane.SyncLane, topic: str
) -> None:
    lane.publish(topic, b"hello")

    assert register(register(spark)) is spark

    assert spark.read.format("sealane").option("url", node.url).load(topic).count() == 1


@pytest.mark.parametrize("version", ["3.5.6", "4.1.2"])
def test_a_spark_that_is_too_old_is_refused(version: str) -> None:
    session = cast("Any", SimpleNamespace(version=version))

    with pytest.raises(InvalidArgument, match=rf"is a session of Spark {version}; Sealane needs 4\.2 or newer"):
        register(session)


def test_secrets_among_the_options_are_in_no_plan(spark: SparkSession, secure_node: NodeProcess, topic: str) -> None:
    profile = read_profile(secure_node.profile)
    assert profile.key is not None
    with sealane.connect_sync(profile=secure_node.profile) as lane:
        lane.publish(topic, b"hello")
    rows = spark.read.format("sealane").options(
        url=profile.url, ca=profile.ca, certificate=profile.certificate, certificateKey=profile.key
    )
    secret = profile.key.splitlines()[1]

    read = rows.load(topic)
    plans = read._jdf.queryExecution().toString()

    assert read.count() == 1
    assert "sealane" in plans
    assert secret not in plans
