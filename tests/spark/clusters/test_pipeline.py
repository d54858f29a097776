"""The pipeline on a real master and two workers, by one setting: the tables are those of the same oracle, though an
executor is killed in every kind of task that they do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sealane.cli.main import app
from sealane.testing.node_process import NodeProcess
from tests.java import SHORT_LIVED, compiled_home
from tests.spark.clusters.pipeline_job import TASKS
from tests.spark.clusters.standalone import LOOPBACK, StandaloneCluster
from tests.spark.killing.lives import python_path
from tests.spark.killing.plan import DIRECTORY, Deed, Plan
from tests.spark.pipeline.killing.load import TOPICS, Load
from tests.spark.pipeline.killing.oracle import expect_all_once
from tests.spark.pipeline.killing.points import Moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

RUN_SECONDS_MAX = 600.0
"""A deadline, not an expectation: machines are shared."""
DEFAULTS = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # Both executors are waited for.
    "spark.sql.shuffle.partitions": "4",
}
"""What whoever runs a cluster has in `spark-defaults.conf`."""


def command(lake: Path, url: str, folder: Path) -> list[str]:
    """As users type it, without its first word."""
    pipeline = ["pipeline", "run", "--once", "--lake", str(lake), "--topics", ",".join(TOPICS), "--url", url]
    return [*pipeline, "--data", str(folder / "data")]


def run_on(master: str, lake: Path, url: str, folder: Path, plan: Plan) -> None:
    """In a process of its own, by a plan that executors know as well."""
    inherited = {"spark.executorEnv.PYTHONPATH": python_path(), f"spark.executorEnv.{DIRECTORY}": str(plan.directory)}
    defaults = {**DEFAULTS, **inherited}
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {text}\n" for name, text in defaults.items()))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.clusters.pipeline_job", *command(lake, url, folder), "--master", master],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        cwd=folder,
        env={
            **os.environ,
            **compiled_home(),
            "PYTHONPATH": python_path(),
            DIRECTORY: str(plan.directory),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": LOOPBACK,
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_on_a_cluster_the_tables_are_the_same_and_a_lake_goes_on_wherever_it_runs(
    cluster: StandaloneCluster, spark: SparkSession, own_node: NodeProcess, tmp_path: Path
) -> None:
    lake, before = tmp_path / "lake", cluster.executors()
    with Load(own_node.url) as load:
        load.round()
        plan = Plan(tmp_path / "plan")
        for task in TASKS:
            plan.add(task, Deed.KILL_ITS_JAVA, Moment.WITHIN_A_TASK)
        run_on(cluster.url, lake, load.url, tmp_path, plan)
        assert not plan.left(), "each kind of task has lost its executor once"
        executors = cluster.executors() - before
        assert len(executors) > len(TASKS), "others have taken the places of those that were killed"
        assert {executor.parents[1].name for executor in executors} == {"worker-0", "worker-1"}, "both have run one"
        expect_all_once(lake, load)
        load.add_partitions("payments", 3)
        load.round()
        # On this machine: Spark's session is that of the tests.
        done = CliRunner().invoke(app, command(lake, load.url, tmp_path))
        assert done.exit_code == 0, done.output
        expect_all_once(lake, load)
