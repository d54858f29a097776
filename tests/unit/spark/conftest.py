"""What Spark's drivers and executors keep open between tasks is closed between tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sealane.spark.options.access import close_lanes


@pytest.fixture(autouse=True)
def no_lane_outlives_its_test() -> Iterator[None]:
    yield
    close_lanes()
