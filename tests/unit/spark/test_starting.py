"""Spark starts a Python for every query that is planned: what it loads is what each of them waits for."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import pyspark.sql.worker.plan_data_source_read
before = set(sys.modules)
import sealane.spark.data_source
print(*sorted(set(sys.modules) - before))
"""


def test_a_query_is_planned_without_pandas_and_without_arrows_compute_functions() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=120)
    loaded = done.stdout.split()

    assert "sealane.spark.source.stream_reader" in loaded
    assert {"pandas", "pyarrow.compute", "pytest"} & set(loaded) == set()
