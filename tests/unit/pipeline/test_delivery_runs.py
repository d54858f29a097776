"""Deliveries by runs of offsets say what an oracle says of each message, in however many steps history comes in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.facts.delivery_runs import PLACE, put_together, told_by
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.steps.fact_files import PIECE_MESSAGES, count_of, facts_of_runs, pieces_of
from sealane.pipeline.steps.history_files import history_runs
from sealane.pipeline.steps.staged import Destination
from sealane.spark.source.rows.history import HISTORY_COLUMNS

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
OFFSETS = 12

event_rows = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["granted", "granted", "acked", "failed", "released", "expired", "subscribed"]),
        "subscription": st.sampled_from(["billing", "audit"]),
        "runs": st.none()
        | st.lists(
            st.tuples(st.integers(0, OFFSETS), st.integers(0, 4)).map(
                lambda run: {"first": run[0], "stop": run[0] + run[1]}
            ),
            max_size=2,
        ),
        "consumer": st.sampled_from(["anna", "bert"]),
        "cause": st.sampled_from([None, "nack", "lease expired"]),
        "reason": st.sampled_from([None, "no such customer"]),
        "partition": st.integers(0, 1),
        "topic": st.sampled_from(["orders", "notes"]),
    }
)


def history(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, HISTORY_COLUMNS)


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**row, "entry": entry, "time": START + timedelta(seconds=entry), "domain": "default"}
        for entry, row in enumerate(rows)
    ]


def one_by_one(deliveries: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in deliveries.to_pylist():
        for offset in range(row["first"], row["stop"]):
            place = (*(row[name] for name in PLACE), offset)
            assert place not in found
            found[place] = tuple(
                row[name] for name in ("first_granted", "grants", "consumer", "cause", "reason", "outcome", "settled")
            )
    return found


def expected(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What the events say, taken in one message at a time."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row["event"] == "subscribed":
            continue
        for run in row["runs"] or []:
            for offset in range(run["first"], run["stop"]):
                place = (*(row[name] for name in PLACE), offset)
                own = found.setdefault(
                    place,
                    dict.fromkeys(("first", "consumer", "cause", "reason", "outcome", "settled")) | {"grants": 0},
                )
                match row["event"]:
                    case "granted":
                        own["first"] = own["first"] or row["time"]
                        own["grants"] += 1
                        own["consumer"] = row["consumer"]
                    case "released":
                        own["grants"] -= 1
                    case "failed":
                        own["cause"], own["reason"] = row["cause"], row["reason"]
                    case outcome if own["outcome"] is None:
                        own["outcome"], own["settled"] = outcome, row["time"]
    names = ("first", "grants", "consumer", "cause", "reason", "outcome", "settled")
    return {place: tuple(own[name] for name in names) for place, own in found.items()}


@given(st.lists(event_rows, max_size=12).map(numbered))
def test_every_message_has_its_own_story(rows: list[dict[str, Any]]) -> None:
    assert one_by_one(put_together(told_by(history_runs(history(rows))))) == expected(rows)


@given(st.lists(event_rows, max_size=12).map(numbered), st.integers(0, 12))
def test_what_is_under_way_goes_on_in_the_next_step(rows: list[dict[str, Any]], cut: int) -> None:
    """As long as nothing is told of a delivery that is settled."""
    before = put_together(told_by(history_runs(history(rows[:cut]))))
    after = put_together(told_by(history_runs(history(rows[cut:]))), before)
    assert one_by_one(after) == expected(rows)


@given(st.lists(event_rows, max_size=8).map(numbered))
def test_history_has_a_row_for_each_run(rows: list[dict[str, Any]]) -> None:
    found = history_runs(history(rows)).select(["entry", "first", "stop"]).to_pylist()
    runs = [{"entry": row["entry"], **run} for row in rows for run in row["runs"] or [{"first": None, "stop": None}]]
    assert found == runs


def test_a_batch_that_was_granted_and_acked_is_one_run() -> None:
    events = [
        {"event": event, "subscription": "billing", "topic": "orders", "partition": 0} for event in ("granted", "acked")
    ]
    rows = numbered([{**event, "runs": [{"first": 0, "stop": 5000}]} for event in events])
    assert len(put_together(told_by(history_runs(history(rows))))) == 1


def messages(*offsets: int) -> pa.Table:
    return pa.table(
        {
            "offset": pa.array(offsets, pa.int64()),
            "id": pa.array([offset.to_bytes(16, "big") for offset in offsets], pa.binary()),
            "created": pa.array([START] * len(offsets), pa.timestamp("us", "UTC")),
            "bytes": pa.array(list(offsets), pa.int32()),
        }
    )


def test_a_fact_has_what_is_known_of_its_message() -> None:
    event = {"subscription": "billing", "topic": "orders", "partition": 0}
    rows = numbered(
        [
            {**event, "event": "released", "runs": [{"first": 0, "stop": 1}]},
            {**event, "event": "acked", "runs": [{"first": 0, "stop": 1}, {"first": 5, "stop": 8}]},
        ]
    )
    settled = put_together(told_by(history_runs(history(rows))))
    found = facts_of_runs(settled, messages(0, 5, 7)).to_pylist()
    assert [row["offset"] for row in found] == [0, 5, 6, 7]
    assert [row["bytes"] for row in found] == [0, 5, None, 7]
    assert [row["latency_ms"] for row in found] == [1000.0, 1000.0, None, 1000.0]
    assert {row["attempts"] for row in found} == {0}
    assert facts_of_runs(settled, messages())["id"].null_count == 4


def test_long_runs_are_cut_and_short_ones_gathered(tmp_path: Path) -> None:
    event = {"subscription": "billing", "topic": "orders", "partition": 0, "event": "acked"}
    short = [{"first": 2 * each, "stop": 2 * each + 1} for each in range(100)]
    long = [{"first": 1000, "stop": 1000 + 2 * PIECE_MESSAGES}]
    settled = put_together(told_by(history_runs(history(numbered([{**event, "runs": short + long}])))))
    pieces = list(pieces_of(settled, Lake(tmp_path), Destination.new(Lake(tmp_path))))
    sizes = []
    offsets: set[int] = set()
    for piece in pieces:
        with pa.ipc.open_stream(piece.deliveries) as reader:
            part = reader.read_all()
        sizes.append(count_of(part))
        offsets.update(one[-1] for one in one_by_one(part))
    assert len(pieces) == 3
    assert max(sizes) <= 2 * PIECE_MESSAGES
    assert len(offsets) == sum(sizes) == 100 + 2 * PIECE_MESSAGES
