"""A real master and two workers: with an installed wheel, by value where there is none, and with executors killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from tests.java import compiled_home
from tests.spark.clusters.job import ROWS
from tests.spark.clusters.standalone import StandaloneCluster
from tests.spark.worker_python import WorkerPython

pytestmark = pytest.mark.slow

JOB = Path(__file__).with_name("job.py")
JOB_SECONDS = 600.0
"""A deadline, not an expectation: machines are shared."""


def run(driver: Path | str, worker: Path, folder: Path, **job: Any) -> dict[str, Any]:
    """What the job found, which ran on this Python as its driver, with that one for workers."""
    temporary = folder / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [str(driver), str(JOB), json.dumps(job)],
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
        cwd=folder,
        env={**os.environ, **compiled_home(), "PYSPARK_PYTHON": str(worker), "TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def expect_each_row_once(node: NodeProcess, *topics: str) -> None:
    """Asked of the node itself, not of Spark."""
    for topic in topics:
        seen: Counter[bytes] = Counter()
        with sealane.connect_sync(node.url) as lane:
            for batch in lane.consume_batches(topic, subscription="check"):
                seen.update(batch.payloads())
                batch.ack()
                if seen.total() >= ROWS:
                    break
            (log,) = lane.logs(topic)
        assert sum(partition.end - partition.start for partition in log.partitions) == ROWS
        assert seen == Counter(b"%d" % number for number in range(ROWS))


def test_an_installed_wheel_reads_and_writes_on_two_executors(
    cluster: StandaloneCluster, node: NodeProcess, python_with_wheel: WorkerPython, tmp_path: Path
) -> None:
    python = python_with_wheel.executable
    job = {"master": cluster.url, "url": node.url, "prefix": "wheel-", "by_value": False, "kill": False}

    found = run(python, python, tmp_path, **job)

    assert len({executor["pid"] for executor in found["executors"]}) == 2
    places = [found["driver"], *(executor["sealane"] for executor in found["executors"])]
    assert all(Path(place).is_relative_to(python_with_wheel.packages) for place in places), (
        "the wheel, not the checkout"
    )
    assert (found["batch"], found["stream"]) == (ROWS, ROWS)
    expect_each_row_once(node, "wheel-batch", "wheel-stream")


def test_by_value_no_worker_needs_it_installed_and_killed_executors_cost_no_row(
    cluster: StandaloneCluster, node: NodeProcess, python_without: WorkerPython, tmp_path: Path
) -> None:
    job = {"master": cluster.url, "url": node.url, "prefix": "value-", "by_value": True, "kill": True}

    found = run(sys.executable, python_without.executable, tmp_path, **job)

    assert len({executor["pid"] for executor in found["executors"]}) == 2
    assert [executor["sealane"] for executor in found["executors"]] == [None, None], "it is installed on neither"
    assert (found["batch"], found["stream"]) == (ROWS, ROWS)
    expect_each_row_once(node, "value-batch", "value-stream")
