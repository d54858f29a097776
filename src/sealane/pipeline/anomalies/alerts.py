"""Anomalies become messages, so that whoever consumes `_system/alerts` is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sealane.pipeline.anomalies.anomaly import Anomaly
from sealane.pipeline.anomalies.rows import read_rows
from sealane.pipeline.lake.tables import Lake
from sealane.whole_files import PUBLIC, replace_file

if TYPE_CHECKING:
    from sealane.client.sync import SyncLane

ALERTS = "_system/alerts"


def publish_alerts(lane: SyncLane, anomalies: Sequence[Anomaly], *, topic: str = ALERTS) -> int:
    """One message each, durable on return. Its id is that of the anomaly, so that a repeat is stored once."""
    for each in anomalies:
        headers = {"measure": each.series.measure, "kind": each.kind, "severity": each.severity}
        lane.publish(topic, alert(each), headers=headers, id=each.id)
    return len(anomalies)


def publish_new_alerts(lane: SyncLane, lake: Lake, *, topic: str = ALERTS) -> int:
    """Publish what was recorded since this was called last, and note that. Whoever was killed before the note publishes
    the same again, under the same ids. Returns how many there were.
    """
    path = _note(lake)
    after = msgspec.json.decode(path.read_bytes(), type=datetime) if path.exists() else None
    anomalies = read_rows(lake, after=after)
    if anomalies:
        publish_alerts(lane, anomalies, topic=topic)
        replace_file(path, msgspec.json.encode(max(each.recorded for each in anomalies)), PUBLIC)
    return len(anomalies)


def alert(anomaly: Anomaly) -> bytes:
    """What the message says, as JSON."""
    series = anomaly.series
    return msgspec.json.encode(
        {
            "id": str(anomaly.id),
            "domain": series.domain,
            "topic": series.topic,
            "subscription": series.subscription or None,
            "measure": series.measure,
            "kind": anomaly.kind,
            "severity": anomaly.severity,
            "began": anomaly.began,
            "ended": anomaly.ended,
            "observed": anomaly.observed,
            "expected": [anomaly.expected_low, anomaly.expected_high],
            "score": round(anomaly.score, 2),
            "contributed": anomaly.contributed,
        }
    )


def _note(lake: Lake) -> Path:
    return lake.root / "state" / "alerts.json"
