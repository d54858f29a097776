"""Facts about deliveries, written where they are made: runs of deliveries become a row for each message."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sealane.message.arrow_compute import pc
from sealane.pipeline.facts.delivery_runs import DELIVERY_RUNS
from sealane.pipeline.lake.tables import DELIVERIES, Lake
from sealane.pipeline.steps.day_files import DayFiles
from sealane.pipeline.steps.message_files import Found, files_with
from sealane.pipeline.steps.places import by_place
from sealane.pipeline.steps.staged import Destination

PIECE_MESSAGES = 250_000
"""What a task makes at once: a second's work, and some tens of megabytes."""

_TIME = pa.timestamp("us", tz="UTC")
_MESSAGE = pa.schema(
    [("partition", pa.int32()), ("offset", pa.int64()), ("id", pa.binary()), ("created", _TIME), ("bytes", pa.int32())]
)
FACT_ROWS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("id", pa.binary()),
        ("subscription", pa.utf8()),
        ("published", _TIME),
        ("first_granted", _TIME),
        ("settled", _TIME),
        ("attempts", pa.int32()),
        ("outcome", pa.utf8()),
        ("latency_ms", pa.float64()),
        ("bytes", pa.int32()),
        ("consumer", pa.utf8()),
        ("cause", pa.utf8()),
        ("reason", pa.utf8()),
    ]
)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FactPiece:
    """Settled deliveries of one partition, and where their messages are. It travels to executors."""

    destination: Destination
    deliveries: bytes
    """Rows of `DELIVERY_RUNS`, as an Arrow stream."""
    files: list[Found]

    def write(self) -> list[str]:
        """Returns the paths of the files, relative to where the run has the table's."""
        with pa.ipc.open_stream(self.deliveries) as reader:
            deliveries = reader.read_all().combine_chunks()
        domain, topic = deliveries["domain"][0].as_py(), deliveries["topic"][0].as_py()
        messages = _messages(self.files, deliveries["partition"][0].as_py())
        files = DayFiles(
            self.destination.directory(DELIVERIES),
            f"domain={domain}/topic={topic}",
            uuid.uuid4().hex,
            FACT_ROWS,
            "settled",
        )
        for batch in facts_of_runs(deliveries, messages).to_batches():
            files.add(batch)
        files.close()
        return list(files.written)


def pieces_of(settled: pa.Table, lake: Lake, destination: Destination) -> Iterator[FactPiece]:
    """Cut into tasks; `settled` are rows of `DELIVERY_RUNS` in the order of places and offsets."""
    for place, own in by_place(settled, ("domain", "topic", "partition")):
        for some in _cut(own):
            first, stop = pc.min(some["first"]).as_py(), pc.max(some["stop"]).as_py()
            files = files_with(lake, (place["domain"], place["topic"]), place["partition"], first, stop)
            yield FactPiece(destination, _stream(some), files)


def count_of(runs: pa.Table) -> int:
    """How many deliveries they are."""
    return int((runs["stop"].to_numpy() - runs["first"].to_numpy()).sum())


def facts_of_runs(deliveries: pa.Table, messages: pa.Table) -> pa.Table:
    """A row for each message; one that is not there leaves its columns null. `messages` are in the order of offsets."""
    first, stop = deliveries["first"].to_numpy(), deliveries["stop"].to_numpy()
    counts = stop - first
    run = np.repeat(np.arange(len(deliveries)), counts)
    offsets = np.arange(len(run)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    columns = {name: deliveries[name].take(pa.array(run)) for name in deliveries.column_names}
    columns |= {"offset": pa.array(offsets), "attempts": pc.max_element_wise(columns["grants"], 0)}
    found = messages.take(_places(messages["offset"].to_numpy(), offsets))
    columns |= {"id": found["id"], "published": found["created"], "bytes": found["bytes"]}
    took_us = pc.subtract(columns["settled"].cast(pa.int64()), columns["published"].cast(pa.int64()))
    columns["latency_ms"] = pc.divide(took_us.cast(pa.float64()), 1000.0)
    return pa.table({name: columns[name] for name in FACT_ROWS.names}).cast(FACT_ROWS)


def _places(known: Ints, wanted: Ints) -> pa.Array:
    if not len(known):
        return pa.nulls(len(wanted), pa.int64())
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return pa.array(places, mask=known[places] != wanted)


def _messages(files: list[Found], partition: int) -> pa.Table:
    """Those of the partition, in the order of their offsets."""
    parts = [
        pq.ParquetFile(each.path).read_row_groups(each.row_groups, columns=_MESSAGE.names, use_threads=False)
        for each in files
    ]
    table = pa.concat_tables([_MESSAGE.empty_table(), *(each.select(_MESSAGE.names).cast(_MESSAGE) for each in parts)])
    table = table.filter(pc.equal(table["partition"], partition))
    offsets = table["offset"].to_numpy()
    return table if (np.diff(offsets) > 0).all() else table.take(pa.array(np.argsort(offsets)))


def _cut(runs: pa.Table) -> Iterator[pa.Table]:
    """In parts of about `PIECE_MESSAGES`; a run that is longer is cut as well."""
    first, stop = runs["first"].to_numpy(), runs["stop"].to_numpy()
    pieces = -(-(stop - first) // PIECE_MESSAGES)
    row = np.repeat(np.arange(len(runs)), pieces)
    begin = first[row] + PIECE_MESSAGES * (np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces))
    end = np.minimum(begin + PIECE_MESSAGES, stop[row])
    cut = runs.take(pa.array(row))
    for name, edges in (("first", begin), ("stop", end)):
        cut = cut.set_column(DELIVERY_RUNS.get_field_index(name), DELIVERY_RUNS.field(name), pa.array(edges))
    task = (np.cumsum(end - begin) - 1) // PIECE_MESSAGES
    starts = np.flatnonzero(np.concatenate([[True], task[1:] != task[:-1]]))
    for start, ending in zip(starts, [*starts[1:], len(task)], strict=True):
        yield cut.slice(start, ending - start)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
