"""Anomalies as rows and as messages: each once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

import sealane
from sealane.pipeline.anomalies.alerts import publish_alerts, publish_new_alerts
from sealane.pipeline.anomalies.anomaly import Anomaly, Contribution, Series
from sealane.pipeline.anomalies.rows import read_rows, write_rows
from sealane.pipeline.lake.appending import append
from sealane.pipeline.lake.tables import ANOMALIES, Lake

BEGAN = datetime(2026, 3, 2, 12, tzinfo=UTC)
SPIKE = Anomaly(
    Series("default", "orders", "", "rate"),
    "baseline",
    BEGAN,
    None,
    observed=900.0,
    expected_low=100.0,
    expected_high=200.0,
    score=14.0,
    recorded=BEGAN + timedelta(minutes=5),
    contributed=(Contribution("anna", 4_000, 12.5),),
)
SLOW = replace(
    SPIKE,
    series=Series("default", "orders", "billing", "latency"),
    kind="rule",
    began=BEGAN + timedelta(days=1),
    ended=BEGAN + timedelta(days=1, hours=1),
    recorded=BEGAN + timedelta(days=2),
    score=1.5,
    contributed=(),
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def record(lake: Lake, number: int, *anomalies: Anomaly) -> None:
    append(lake, ANOMALIES, partial(write_rows, anomalies=anomalies), writer="anomalies", number=number)


def test_what_is_recorded_is_read_again(lake: Lake) -> None:
    assert read_rows(lake) == []
    record(lake, 1, SPIKE, SLOW)
    record(lake, 2)
    assert read_rows(lake) == [SPIKE, SLOW]
    assert read_rows(lake, after=SPIKE.recorded) == [SLOW]
    assert {path.parent.name for path in lake.files(ANOMALIES)} == {"date=2026-03-02", "date=2026-03-03"}


def test_an_id_is_that_of_a_series_a_kind_and_a_beginning() -> None:
    assert replace(SPIKE, ended=SPIKE.recorded, observed=1.0, score=7.0).id == SPIKE.id
    others = [replace(SPIKE, kind="rule"), replace(SPIKE, began=SPIKE.recorded), replace(SPIKE, series=SLOW.series)]
    assert len({each.id for each in (SPIKE, *others)}) == 4


def test_an_alert_says_what_was_expected_and_what_contributed() -> None:
    with sealane.embedded_sync() as lane:
        assert publish_alerts(lane, [SPIKE, SLOW], topic="alerts") == 2
        messages = iter(lane.consume("alerts", "people"))
        first, second = next(messages), next(messages)
    assert dict(first.headers) == {"measure": "rate", "kind": "baseline", "severity": "critical"}
    told = msgspec.json.decode(first.payload)
    assert (told["expected"], told["observed"], told["ended"]) == ([100.0, 200.0], 900.0, None)
    assert told["contributed"] == [{"who": "anna", "messages": 4_000, "usual": 12.5}]
    assert (told["id"], first.id) == (str(SPIKE.id), SPIKE.id)
    assert dict(second.headers)["severity"] == "warning"


def test_each_anomaly_is_published_once_whoever_is_killed(lake: Lake) -> None:
    record(lake, 1, SPIKE)
    with sealane.embedded_sync() as lane:
        publish_alerts(lane, [SPIKE], topic="alerts")  # As one who was killed before it was noted.
        assert publish_new_alerts(lane, lake, topic="alerts") == 1
        assert publish_new_alerts(lane, lake, topic="alerts") == 0
        record(lake, 2, SLOW)
        assert publish_new_alerts(lane, lake, topic="alerts") == 1
        messages = iter(lane.consume("alerts", "people"))
        assert [next(messages).id, next(messages).id] == [SPIKE.id, SLOW.id]
        assert sum(len(stored.batch) for stored in lane.browse("alerts")) == 2
