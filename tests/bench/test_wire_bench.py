"""The measurement over the wire measures: three processes, and a figure for every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.wire import latencies


@pytest.mark.slow
def test_every_publish_is_timed_to_its_receipt_and_to_its_arrival(tmp_path: Path) -> None:
    to_receipt, to_arrival = latencies(tmp_path, count=20)
    assert len(to_receipt) == len(to_arrival) == 20
    assert min(to_receipt + to_arrival) > 0
