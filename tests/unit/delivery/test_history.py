"""What each event of a journal is as a row of the history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import (
    Acked,
    Advanced,
    Configured,
    DeadLettered,
    Dropped,
    Event,
    Expired,
    Extended,
    Failed,
    Granted,
    Lost,
    Published,
    Released,
    Sought,
    Subscribed,
    TransactionDone,
    Unsubscribed,
    encode_events,
)
from sealane.delivery.history import history_rows
from sealane.delivery.offsets import pack

CONFIG = SubscriptionConfig("key-shared", filter="priority > 5")
TOLD = {"mode": "key-shared", "filter": "priority > 5"}
RUNS = {"runs": [{"first": 3, "stop": 5}, {"first": 9, "stop": 10}]}
SCATTERED = pack(BitMap64([3, 4, 9]))
OURS = {"subscription": "billing"}


def at(time_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)


def below(offset: int) -> dict[str, Any]:
    return {"runs": [{"first": 0, "stop": offset}]}


@pytest.mark.parametrize(
    ("event", "row"),
    [
        (Subscribed("billing", CONFIG, 7), {"event": "subscribed", **OURS, **below(7), **TOLD}),
        (Configured("billing", CONFIG), {"event": "configured", **OURS, **TOLD}),
        (Unsubscribed("billing"), {"event": "unsubscribed", **OURS}),
        (
            Granted("billing", 8, "anna", SCATTERED, 1_000, 2_000),
            {"event": "granted", **OURS, **RUNS, "lease": 8, "consumer": "anna", "time": at(1_000), "until": at(2_000)},
        ),
        (Acked("billing", 8, SCATTERED, 1_000), {"event": "acked", **OURS, **RUNS, "lease": 8, "time": at(1_000)}),
        (
            Failed("billing", 8, SCATTERED, 1_000, 2_000, "nack", "no such customer"),
            {"event": "failed", **OURS, **RUNS, "lease": 8, "time": at(1_000), "until": at(2_000)}
            | {"cause": "nack", "reason": "no such customer"},
        ),
        (Released("billing", 8, SCATTERED), {"event": "released", **OURS, **RUNS, "lease": 8}),
        (DeadLettered("billing", SCATTERED, 1_000), {"event": "dead-lettered", **OURS, **RUNS, "time": at(1_000)}),
        (Expired("billing", SCATTERED, 1_000), {"event": "expired", **OURS, **RUNS, "time": at(1_000)}),
        (Dropped("billing", SCATTERED, 1_000), {"event": "dropped", **OURS, **RUNS, "time": at(1_000)}),
        (Sought("billing", 7, 1_000), {"event": "sought", **OURS, **below(7), "time": at(1_000)}),
        (Advanced("billing", 7, 1_000), {"event": "advanced", **OURS, **below(7), "time": at(1_000)}),
        (Lost(3, 5, 1_000), {"event": "lost", "runs": [{"first": 3, "stop": 5}], "time": at(1_000)}),
        (
            Published(3, 2, 1_000, only="billing"),
            {"event": "addressed", **OURS, "runs": [{"first": 3, "stop": 5}]},
        ),
    ],
    ids=lambda given: type(given).__name__ if not isinstance(given, dict) else "",
)
def test_an_event_is_a_row(event: Event, row: dict[str, Any]) -> None:
    (found,) = history_rows([(42, encode_events([event]))]).to_pylist()
    assert {name: value for name, value in found.items() if value is not None} == {"entry": 42, **row}


@pytest.mark.parametrize(
    "event", [Published(3, 2, 1_000), Extended("billing", 8, 2_000), TransactionDone("order-42", 1_000)]
)
def test_what_tells_nothing_of_messages_is_no_row(event: Event) -> None:
    assert history_rows([(42, encode_events([event]))]).num_rows == 0
