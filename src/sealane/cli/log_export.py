"""`sealane log export`: a topic's messages as an Arrow, Parquet or JSON lines file, sealed or not."""

from __future__ import annotations

import base64
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sealane.cli.data_directory import DataDirectory, PartitionView
from sealane.engine.contract import PartitionKey, Stored
from sealane.engine.local.compacted import open_messages
from sealane.errors import CorruptData, InvalidArgument, KeyUnavailable, TopicNotFound
from sealane.message import SCHEMA

EXPORT_SCHEMA = pa.schema([pa.field("partition", pa.int32(), False), pa.field("offset", pa.int64(), False), *SCHEMA])
FORMATS = ("arrow", "parquet", "jsonl")
STANDARD_OUTPUT = Path("-")
_ROW_GROUP_ROWS = 64 * 1024


@dataclass(frozen=True)
class Request:
    """What to export, and where to."""

    directory: Path
    domain: str
    topic: str
    out: Path
    format: str
    partition: int | None = None
    start: int = 0
    stop: int | None = None


@dataclass
class Exported:
    messages: int = 0
    skipped: int = 0
    """Messages that are damaged and could not be read."""


Progress = Callable[[int, int], None]
"""Told the messages exported so far and the messages there are."""


class Sink(Protocol):
    def write(self, records: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def export(request: Request, progress: Progress) -> Exported:
    """Write the file. It appears under its name only when it is complete."""
    exported = Exported()
    draft = request.out if request.out == STANDARD_OUTPUT else request.out.with_name(request.out.name + ".part")
    sink: Sink | None = None
    try:
        for key in _partitions(request):
            for records, total in _records(request, key, exported):
                if sink is None:
                    sink = _open(request.format, draft)
                sink.write(records)
                exported.messages += records.num_rows
                progress(exported.messages, max(total, exported.messages))
        if sink is None:
            sink = _open(request.format, draft)
        sink.close()
        if draft != request.out:
            draft.replace(request.out)
    except BaseException:
        if draft != request.out:
            draft.unlink(missing_ok=True)
        raise
    return exported


def _partitions(request: Request) -> list[PartitionKey]:
    with DataDirectory.look(request.directory) as view:
        topics = view.topics()
        found = topics.get((request.domain, request.topic))
        if found is None:
            known = ", ".join(f"{domain}/{topic}" for domain, topic in topics) or "none"
            raise TopicNotFound(f"{request.domain}/{request.topic}", f"topics here: {known}")
        keys = [partition.key for partition in found]
    if request.partition is None:
        return keys
    chosen = [key for key in keys if key.partition == request.partition]
    if not chosen:
        raise InvalidArgument(
            "--partition",
            f"{request.domain}/{request.topic} has no partition {request.partition}, but {len(keys)} in all",
        )
    return chosen


def _records(request: Request, key: PartitionKey, exported: Exported) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The partition's messages in order, with the number of all there are to export.

    When a running node compacts a file away before it was read, a new view tells where its messages went.
    """
    offset = request.start
    missing: str | None = None
    while True:
        with DataDirectory.look(request.directory) as view:
            partition = view.partitions.get(key)
            if partition is None:
                return
            total = _total(view, request)
            try:
                for stored, stop in _stored(view, partition, offset, request.stop):
                    if stored is None:
                        exported.skipped += stop - max(offset, partition.messages.start)
                    else:
                        yield _between(stored, key.partition, offset, request.stop), total
                    offset = stop
                return
            except FileNotFoundError as error:
                if error.filename == missing:
                    raise CorruptData(f"{missing} is missing; see `sealane log verify`") from error
                missing = error.filename


def _stored(
    view: DataDirectory, partition: PartitionView, offset: int, stop: int | None
) -> Iterator[tuple[Stored | None, int]]:
    """Batches that hold offsets from `offset` on, each with where it stops; None where one is damaged."""
    sealer = view.sealer()
    start = max(offset, partition.messages.start)
    for piece in partition.messages.pieces:
        row = piece.row
        if row.stop <= start or (stop is not None and row.base >= stop):
            continue
        if piece.sealed and sealer is None:
            raise KeyUnavailable(
                f"{partition.key} is sealed and {view.files.location}/master.key is missing; restore it, then try again"
            )
        try:
            opened = open_messages(
                view.read(piece),
                partition=partition.key,
                base=row.base,
                count=row.count,
                flags=row.flags,
                sealer=sealer,
            )
        except CorruptData:
            yield None, row.stop
            continue
        for stored in opened:
            if stored.stop > start and (stop is None or stored.base < stop):
                yield stored, stored.stop


def _between(stored: Stored, partition: int, start: int, stop: int | None) -> pa.RecordBatch:
    """The rows from `start` to before `stop`, with partition and offset in front."""
    first = max(start, stored.base)
    last = stored.stop if stop is None else min(stop, stored.stop)
    records = stored.batch.slice(first - stored.base, last - stored.base).records
    rows = records.num_rows
    columns = [
        pa.repeat(pa.scalar(partition, pa.int32()), rows),
        pa.array(np.arange(first, first + rows, dtype=np.int64)),
        *records.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EXPORT_SCHEMA)


def _total(view: DataDirectory, request: Request) -> int:
    total = 0
    for partition in view.topics().get((request.domain, request.topic), ()):
        if request.partition in (None, partition.key.partition):
            end = partition.messages.end if request.stop is None else min(request.stop, partition.messages.end)
            total += max(0, end - max(request.start, partition.messages.start))
    return total


def _open(format: str, path: Path) -> Sink:
    if format == "arrow":
        return _ArrowSink(path)
    return _ParquetSink(path) if format == "parquet" else _JsonLinesSink(path)


class _ArrowSink:
    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, EXPORT_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd"))

    def write(self, records: pa.RecordBatch) -> None:
        self._writer.write_batch(records)

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class _ParquetSink:
    def __init__(self, path: Path) -> None:
        self._writer = pa.parquet.ParquetWriter(str(path), EXPORT_SCHEMA, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, records: pa.RecordBatch) -> None:
        # A row group for every small batch would make a file that is slow to read.
        self._waiting.append(records)
        self._rows += records.num_rows
        if self._rows >= _ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting, self._rows = [], 0


class _JsonLinesSink:
    """One object a line, with the field names of the HTTP interface: bytes that are not text go by `…_base64`."""

    def __init__(self, path: Path) -> None:
        self._own = path != STANDARD_OUTPUT
        self._file = path.open("w", encoding="utf-8") if self._own else sys.stdout

    def write(self, records: pa.RecordBatch) -> None:
        for row in records.to_pylist():
            self._file.write(json.dumps(_object(row), ensure_ascii=False) + "\n")

    def close(self) -> None:
        if self._own:
            self._file.close()
        else:
            self._file.flush()


def _object(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name == "id":
            found["id"] = str(uuid.UUID(bytes=value))
        elif isinstance(value, bytes):
            found.update(_bytes(name, value))
        elif name == "headers":
            found["headers"] = dict(value)
        elif hasattr(value, "isoformat"):
            found[name] = value.isoformat()
        else:
            found[name] = value
    return found


def _bytes(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}
