"""The scenarios in `transcripts/` still read as they do. `SEALANE_REWRITE=1` writes what they read like now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.delivery.transcript import play

TRANSCRIPTS = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
def test_the_scenario_reads_as_written(path: Path) -> None:
    written = path.read_text("utf-8")
    played = play(written)
    if os.environ.get("SEALANE_REWRITE"):
        path.write_text(played, "utf-8")
    else:
        assert played == written


def test_there_are_scenarios() -> None:
    assert len(TRANSCRIPTS) >= 8
