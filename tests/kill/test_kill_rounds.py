"""A node that is killed again and again, under load, over the wire, keeps its word."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.kill.rounds import Killing

ROUNDS = 10


@pytest.mark.slow
def test_a_node_that_is_killed_under_load_loses_nothing_and_brings_nothing_back(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEALANE_KILL_SEED", "7"))
    report = asyncio.run(Killing(tmp_path, seed, print).run(ROUNDS))
    print("\n".join(report.lines()))
    assert report.violations == []
    assert sum(report.deaths.values()) == ROUNDS
    # Otherwise there was nothing to lose.
    assert min(report.acknowledged, report.confirmed, report.dead_letters) > 0
