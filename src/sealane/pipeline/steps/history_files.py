"""Rows of the table of history, and its files."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.steps.day_files import DayFiles
from sealane.pipeline.steps.places import by_place

_PLACE = ("domain", "topic")
_DAY = "_day"


def history_runs(history: pa.Table) -> pa.Table:
    """A row for each run of offsets, as the table has history: `first` up to, and without, `stop`. Events without any
    have one row, with nulls.
    """
    history = history.combine_chunks()
    runs = history["runs"].combine_chunks() if len(history) else pa.array([], history.schema.field("runs").type)
    counts = pc.fill_null(pc.list_value_length(runs), 0).to_numpy()
    made = np.maximum(counts, 1)
    rows = np.repeat(np.arange(len(history)), made)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(made) - made, made)
    # Where in the flat list each row's run is; an event without any has none.
    places = pa.array((np.cumsum(counts) - counts)[rows] + within, mask=counts[rows] == 0)
    flat = runs.flatten()
    found = history.drop_columns("runs").take(pa.array(rows))
    for name in ("first", "stop"):
        found = found.append_column(name, flat.field(name).take(places))
    return found


def write_history(runs: pa.Table, staging: Path) -> None:
    """Write all of them, laid out as the table is. Events without a time are of the day on which they came in."""
    staging.mkdir(parents=True, exist_ok=True)
    now = pa.scalar(time.time_ns() // 1_000, pa.int64()).cast(runs.schema.field("time").type)
    runs = runs.append_column(_DAY, pc.fill_null(runs["time"], now))
    schema = pa.schema([each for each in runs.schema if each.name not in (*_PLACE, _DAY)])
    for place, own in by_place(runs, _PLACE):
        directory = f"domain={place['domain']}/topic={place['topic']}"
        files = DayFiles(staging, directory, uuid.uuid4().hex, schema, _DAY)
        for batch in own.to_batches():
            files.add(batch)
        files.close()
