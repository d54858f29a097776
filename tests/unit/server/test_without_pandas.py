"""A node does not load pandas, whatever it does with Arrow."""

from __future__ import annotations

import subprocess
import sys

import pytest

GOING_WITHOUT = """
import sys
from sealane.server.without_pandas import keep_pandas_out
keep_pandas_out()
import pyarrow as pa, pyarrow.compute as pc
assert pc.equal(pa.array([1, 2]), 2).to_pylist() == [False, True]
assert pa.scalar("x").as_py() == "x"
print("pandas" in sys.modules)
import pandas
print(pandas.Series([1]).sum())
"""


def test_arrow_makes_arrays_without_it_and_others_may_still_load_it():
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", GOING_WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1"]
