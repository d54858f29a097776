"""What an executor does with a range of a partition: it makes rows of the tables, and writes them where it is.

The rows never go through Spark, which would hand them from Python to Java, row by row, and back. What Spark gets is a
list of files, and the runs of ids that are in them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.message.names import split_topic
from sealane.pipeline.clean.repeats import ID_BYTES, RUN, Runs, runs_of
from sealane.pipeline.clean.rows import CLEAN_ROWS, RAW_ROWS, MessageRows
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, QUARANTINE, RAW_MESSAGES
from sealane.pipeline.steps.day_files import DayFiles
from sealane.pipeline.steps.staged import Destination

QUARANTINED = ("id", "partition", "offset", "created", "bytes", "reason")
_PLACE = ("domain", "topic")
"""Columns that are in the names of directories."""

FILE_ROWS = pa.schema([("range", pa.utf8()), ("table", pa.utf8()), ("path", pa.utf8()), ("runs", pa.binary())])
"""What Spark gets: a row for each file, its path relative to where the run has the table's; and one, with the runs of
ids, for each range. A range has a name of its own, for each try."""


class RangeWriter:
    """Writes the messages of one range."""

    def __init__(self, rows: MessageRows, destination: Destination, topic: str) -> None:
        """`topic` is its full name."""
        self._rows = rows
        self._topic = topic
        self._range = uuid.uuid4().hex
        domain, name = split_topic(topic)
        directory = f"domain={domain}/topic={name}"
        self._files = {
            table: DayFiles(destination.directory(table), directory, self._range, schema, "created")
            for table, schema in (
                (RAW_MESSAGES, _laid_out(RAW_ROWS)),
                (CLEAN_MESSAGES, _laid_out(pa.schema([each for each in CLEAN_ROWS if each.name != "reason"]))),
                (QUARANTINE, pa.schema([CLEAN_ROWS.field(name) for name in QUARANTINED])),
            )
        }

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Everything is in files when this ends. Yields rows of `FILE_ROWS`."""
        runs: list[Runs] = [np.empty(0, RUN)]
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                runs.append(runs_of(self._topic, _id_bytes(batch["id"]), batch["offset"].to_numpy()))
                made = self._rows.made_of(batch)
                self._files[RAW_MESSAGES].add(made.raw)
                poison = made.clean["reason"].is_valid()
                if poison.true_count:
                    self._files[QUARANTINE].add(made.clean.filter(poison))
                    self._files[CLEAN_MESSAGES].add(made.clean.filter(pc.invert(poison)))
                else:
                    self._files[CLEAN_MESSAGES].add(made.clean)
        finally:
            for files in self._files.values():
                files.close()
        rows: list[dict[str, Any]] = [
            {"range": self._range, "table": table.full_name, "path": path}
            for table, files in self._files.items()
            for path in files.written
        ]
        rows.append({"range": self._range, "runs": np.concatenate(runs).tobytes()})
        yield pa.RecordBatch.from_pylist(rows, FILE_ROWS)


def _laid_out(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each for each in schema if each.name not in _PLACE])


def _id_bytes(ids: pa.Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """16 in a row."""
    _, starts, data = ids.buffers()
    first = np.frombuffer(starts, np.int32)[ids.offset]
    return np.frombuffer(data, np.uint8)[first : first + len(ids) * ID_BYTES].reshape(len(ids), ID_BYTES)
