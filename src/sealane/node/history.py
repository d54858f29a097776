"""What has happened to messages, read from the journals that the node keeps beside them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sealane.delivery.history import HISTORY_SCHEMA, history_rows
from sealane.errors import InvalidArgument, InvalidBatch
from sealane.message.ipc_message import inspect
from sealane.message.validation import first_line
from sealane.node.owner import PartitionOwner
from sealane.schemas.arrow.messages import messages_in

HISTORY_BYTES_MAX = 1 << 18
"""Of the journal, read for one answer: scattered offsets take eight times as much as rows, which is still no large
answer."""


@dataclass(frozen=True, slots=True)
class History:
    """A run of journal entries as rows."""

    next_entry: int
    """Where to go on; the entry that was asked for: there is nothing more yet."""
    rows: pa.RecordBatch

    def to_stream(self) -> bytes:
        """The rows as they cross the wire: an Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, HISTORY_SCHEMA) as stream:
            stream.write_batch(self.rows)
        return sink.getvalue().to_pybytes()

    @classmethod
    def of_stream(cls, next_entry: int, stream: memoryview) -> History:
        """As `to_stream` wrote it. Raises `InvalidBatch` for what no node should say: Arrow would believe it, and might
        end the process over it.
        """
        messages = list(messages_in(stream))
        if len(messages) != 2:
            raise InvalidBatch(f"a history has a schema and a record batch, not {len(messages)} messages")
        inspect(messages[1])
        try:
            if pa.ipc.read_schema(pa.py_buffer(messages[0])) != HISTORY_SCHEMA:
                raise InvalidBatch("a history has other columns")
            rows = pa.ipc.read_record_batch(pa.py_buffer(messages[1]), HISTORY_SCHEMA)
            rows.validate(full=True)
        except (pa.ArrowException, OSError, EOFError, ValueError, TypeError, MemoryError) as error:
            raise InvalidBatch(f"Arrow cannot read the history: {first_line(error)}") from None
        return cls(next_entry, rows)


async def read_history(owner: PartitionOwner, entry: int, *, bytes_max: int, stop: int | None) -> History:
    """What the journal says from an entry on; what is older than the topic's retention is gone, and left out."""
    if entry < 0:
        raise InvalidArgument("entry", f"{entry} is no journal entry: they are numbered from 0")
    bytes_max = min(max(bytes_max, 1), HISTORY_BYTES_MAX)
    there = owner.journal.stored
    found = await owner.engine.read_journal(owner.key, entry, bytes_max=bytes_max)
    if stop is not None:
        found = [each for each in found if each[0] < stop]
    # What is missing in between was damaged: whoever reads goes on behind it.
    behind = found[-1][0] + 1 if found else max(entry, there.stop if stop is None else min(stop, there.stop))
    return History(behind, history_rows(found))
