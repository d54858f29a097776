"""Writing compacted files. A file has its real name only once it is complete and on disk."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from sealane.engine.local import record
from sealane.engine.local.compacted import ARROW, BASE_FIELD, COUNT_FIELD, META_FIELD, ZIPPED, zip_body
from sealane.engine.local.compaction_plan import Job
from sealane.engine.local.files import File, Files
from sealane.engine.local.manifest import CompactedFile, Place
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES, NONCE_BYTES, SEALED
from sealane.engine.local.segment import HEADER_BYTES, SegmentHeader
from sealane.message import SCHEMA, Batch, BatchMeta, encode
from sealane.security.at_rest.sealing import Sealer

_ARROW_MAGIC_BYTES = 8
_PLAIN_META = BatchMeta()


class Writer(Protocol):
    """Takes a log's content in order, and gives back the finished file."""

    def messages(self, base: int, batch: Batch, time_us: int) -> int:
        """Add a batch; returns how many bytes were written."""
        ...

    def journal(self, base: int, items: list[bytes], time_us: int) -> int: ...
    def finish(self) -> CompactedFile: ...
    def abandon(self) -> None:
        """Close without finishing. What was written stays a draft."""
        ...


def open_writer(files: Files, job: Job, sealer: Sealer | None, entropy: Callable[[int], bytes]) -> Writer:
    files.make_directory(job.name.rpartition("/")[0])
    file = files.open(job.draft, create=True)
    file.truncate(0)
    if job.name.endswith(".arrow"):
        return _ArrowWriter(files, file, job)
    return _LogWriter(files, file, job, sealer if job.sealed else None, entropy(NONCE_BYTES))


def _finish(files: Files, file: File, job: Job, file_bytes: int, places: list[Place]) -> CompactedFile:
    file.sync()
    file.close()
    files.rename(job.draft, job.name)
    # Whoever reads it has lagged behind for long: the memory is of more use to what comes in now.
    files.let_go(job.name)
    return CompactedFile(
        name=job.name,
        partition=job.partition,
        kind=job.kind,
        generation=job.generation,
        sealed=job.sealed,
        file_bytes=file_bytes,
        base=job.base,
        stop=job.stop,
        places=tuple(places),
    )


class _LogWriter:
    """Records of one entry each, sealed when there is a sealer."""

    def __init__(self, files: Files, file: File, job: Job, sealer: Sealer | None, nonce: bytes) -> None:
        self._files = files
        self._file = file
        self._job = job
        self._sealer = sealer
        self._nonce = nonce
        self._position = HEADER_BYTES
        self._sequence = 1
        self._places: list[Place] = []
        created_us = job.sources[-1].time_us if job.sources else 0
        file.write_at(0, [SegmentHeader(record.FORMAT, nonce, self._sequence, created_us).encode()])

    def messages(self, base: int, batch: Batch, time_us: int) -> int:
        return self._add(MESSAGES, base, len(batch), encode(batch, compression="zstd"), 0, time_us)

    def journal(self, base: int, items: list[bytes], time_us: int) -> int:
        return self._add(JOURNAL, base, len(items), zip_body(record.pack(items)), MANY | ZIPPED, time_us)

    def finish(self) -> CompactedFile:
        return _finish(self._files, self._file, self._job, self._position, self._places)

    def abandon(self) -> None:
        self._file.close()

    def _add(self, kind: int, base: int, count: int, plain: bytes, flags: int, time_us: int) -> int:
        partition = self._job.partition
        body: bytes | memoryview = plain
        if self._sealer is not None:
            flags |= SEALED
            body = self._sealer.seal(partition.domain, plain, record.associated(partition, kind, base, count))
        entry = record.describe(kind, partition, 0, base, count, body, flags=flags)
        buffers, head = record.encode_record(self._sequence, self._nonce, time_us, [(entry, body)])
        self._file.write_at(self._position, buffers)
        ((_, body_at),) = head.bodies()
        self._places.append(
            Place(base, count, self._position + body_at, len(body), time_us, entry.body_checksum, flags)
        )
        self._position += head.record_bytes
        self._sequence += 1
        return head.record_bytes


class _ArrowWriter:
    """A plain Arrow IPC file with zstd buffers; offsets and batch metadata are each batch's custom metadata."""

    def __init__(self, files: Files, file: File, job: Job) -> None:
        self._files = files
        self._file = file
        self._job = job
        self._sink = _Sink()
        domain, topic, incarnation, partition = job.partition
        named = {
            "sealane.domain": domain,
            "sealane.topic": topic,
            "sealane.incarnation": str(incarnation),
            "sealane.partition": str(partition),
        }
        schema = SCHEMA.with_metadata(named)
        self._stream = pa.PythonFile(self._sink, mode="w")
        self._writer = pa.ipc.new_file(self._stream, schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        # Arrow writes the schema together with the first batch; where that batch begins follows from the schema's size.
        self._head_bytes = _ARROW_MAGIC_BYTES + schema.serialize().size
        self._position = 0
        self._places: list[Place] = []

    def messages(self, base: int, batch: Batch, time_us: int) -> int:
        metadata: dict[bytes, bytes] = {BASE_FIELD: b"%d" % base, COUNT_FIELD: b"%d" % len(batch)}
        # What every tool is to see is in the columns, an envelope of all messages too.
        meta = batch.meta if batch.meta.envelope is None else msgspec.structs.replace(batch.meta, envelope=None)
        if meta != _PLAIN_META:
            metadata[META_FIELD] = msgspec.msgpack.encode(meta)
        self._writer.write_batch(batch.records, custom_metadata=pa.KeyValueMetadata(metadata))
        start = self._position
        written = self._flush()
        skip = self._head_bytes if start == 0 else 0
        message = memoryview(written)[skip:]
        self._places.append(
            Place(base, len(batch), start + skip, len(message), time_us, record.checksum(message), ARROW)
        )
        return len(written)

    def journal(self, base: int, items: list[bytes], time_us: int) -> int:
        raise TypeError("an Arrow file holds messages, no journal")

    def finish(self) -> CompactedFile:
        self._writer.close()
        self._flush()
        self._stream.close()
        return _finish(self._files, self._file, self._job, self._position, self._places)

    def abandon(self) -> None:
        self._file.close()

    def _flush(self) -> bytes:
        """Write what Arrow has handed over, in one piece."""
        written = self._sink.take()
        self._file.write_at(self._position, [written])
        self._position += len(written)
        return written


class _Sink(io.RawIOBase):
    """Gathers what Arrow writes: it comes in many small pieces."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data))
        self._parts.append(part)
        self._length += len(part)
        return len(part)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
