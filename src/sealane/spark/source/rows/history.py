"""A range of a partition's journal as rows: what has happened to its messages."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sealane.client.sync import SyncLane
from sealane.delivery.history import HISTORY_SCHEMA
from sealane.log import get_log
from sealane.node.history import History
from sealane.spark.errors import DataLoss, Loss
from sealane.spark.options.access import Access, with_retries
from sealane.spark.source.rows.columns import Origin
from sealane.spark.source.rows.reading import Range

log = get_log("sealane.spark")

_RUNS = pa.list_(pa.struct([("first", pa.int64()), ("stop", pa.int64())]))

HISTORY_COLUMNS = pa.schema(
    [
        *((each.name, _RUNS if each.name == "runs" else each.type) for each in HISTORY_SCHEMA),
        ("domain", pa.utf8()),
        ("topic", pa.utf8()),
        ("partition", pa.int32()),
    ]
)
"""What a source of history yields."""


def fetch_history(access: Access, range: Range, *, fail_on_data_loss: bool = True) -> Iterator[pa.RecordBatch]:
    """The rows of the range's journal entries in their order, each once. Raises what `read` of messages raises.

    `range` counts journal entries here, of which some have no rows.
    """
    origin = Origin(range.topic, range.partition)
    entry = range.start
    while entry < range.stop:
        read = _read(access, range, entry)
        if read.next_entry <= entry:
            _lose(range, entry, fail_on_data_loss)
            return
        entry = read.next_entry
        if read.rows.num_rows:
            columns = [*read.rows.columns, *origin.columns(read.rows.num_rows)]
            arrays = [column.cast(field.type) for column, field in zip(columns, HISTORY_COLUMNS, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=HISTORY_COLUMNS)


def _read(access: Access, range: Range, entry: int) -> History:
    def ask(lane: SyncLane) -> History:
        return lane.history(range.topic, range.partition, entry, incarnation=range.incarnation, stop=range.stop)

    what = f"reading the history of topic {range.topic!r} partition {range.partition} from entry {entry}"
    return with_retries(access, what, ask)


def _lose(range: Range, start: int, fail_on_data_loss: bool) -> None:
    loss = Loss(range.topic, range.partition, start, range.stop)
    if fail_on_data_loss:
        raise DataLoss([loss])
    log.warning("history that was to be read is gone", lost=loss)
