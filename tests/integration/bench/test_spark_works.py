"""Each measurement of Spark runs, with real Spark and real nodes, and what it returns can be true."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.spark import sessions
from bench.work import Reading
from bench.works import WORKS
from tests.java import compiled_home

POSSIBLE_RATE = 50_000_000


@pytest.fixture(autouse=True)
def _spark_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    if (reason := sessions.missing()) is not None:
        pytest.skip(reason)
    for name, value in compiled_home().items():
        monkeypatch.setenv(name, value)


def measure(name: str, path: Path, **fewer: int) -> Reading:
    """One round of a work, and every part of it has been told of."""
    work = WORKS[name]
    reading = work.measure(path, {**work.amounts_for(quick=True), **fewer})
    assert all(reading.of(part.name) for part in work.parts)
    assert all(0 <= share <= 1 for share in reading.foreign)
    return reading


@pytest.mark.slow
def test_topics_are_read_beside_parquet_and_tuples(tmp_path: Path) -> None:
    reading = measure("spark-source", tmp_path, count=10_000, batch=1_000, warm_rounds=0, less_count=2_000)
    for part in WORKS["spark-source"].parts:
        assert 0 < min(reading.of(part.name)) <= max(reading.of(part.name)) < POSSIBLE_RATE
    ((topic,), (parquet,), (ratio,)) = (reading.of(name) for name in ("plain", "parquet", "plain-ratio"))
    assert ratio == pytest.approx(topic / parquet)


@pytest.mark.slow
def test_topics_are_written_beside_parquet(tmp_path: Path) -> None:
    reading = measure("spark-sink", tmp_path, count=10_000, warm_rounds=0)
    for part in WORKS["spark-sink"].parts:
        assert 0 < min(reading.of(part.name)) <= max(reading.of(part.name)) < POSSIBLE_RATE


@pytest.mark.slow
def test_every_publish_is_timed_to_its_micro_batch(tmp_path: Path) -> None:
    reading = measure("spark-freshness", tmp_path, count=20, warm_batches=2)
    assert len(reading.distributions["p50"]) == 20
    assert 0 < reading.values["p50"] <= reading.values["p95"] <= reading.values["p99"]


@pytest.mark.slow
def test_a_lake_is_reconciled_and_what_was_planted_is_named(tmp_path: Path) -> None:
    reading = measure("reconciliation", tmp_path, messages=50_000)
    assert reading.values["named"] == 18
    assert reading.values["seconds"] > 0
