"""Spark Connect: the driver's program has no Spark of its own, and its server no Sealane but the one it is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sealane.testing.node_process import NodeProcess
from tests.java import compiled_home
from tests.spark.clusters.connected import ROWS
from tests.spark.worker_python import WorkerPython

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("connected.py")
PROGRAM_SECONDS = 600.0
"""A deadline, not an expectation: machines are shared."""


def test_a_client_of_spark_connect_reads_and_writes_in_one_go_and_as_a_stream(
    java: None, node: NodeProcess, python_without: WorkerPython, tmp_path: Path
) -> None:
    done = subprocess.run(
        # Spark starts a server of its own for a client that asks for a local one.
        [sys.executable, str(PROGRAM), "local[2]", node.url, "connect-", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        cwd=tmp_path,
        env={
            **os.environ,
            **compiled_home(),
            "PYSPARK_PYTHON": str(python_without.executable),
            "TMPDIR": str(tmp_path),
        },
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"session": "pyspark.sql.connect.session", "batch": ROWS, "stream": ROWS}
