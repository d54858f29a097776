"""The sink: `df.write` and `writeStream` for topics, exactly once.

Executors stage what their tasks write, each attempt a part of its own; the driver publishes the parts of the attempts
that count, together, in a transaction. A streaming query's transactions are its micro-batches: Spark repeats one after
a crash, perhaps with other partitions, and the node knows that it has been published.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from sealane.client.sync.lane import SyncLane
from sealane.errors import SealaneError
from sealane.node.transactions import TRANSACTION_ID_CHARS_MAX
from sealane.security.envelopes import PublicKey
from sealane.spark.errors import InvalidOption
from sealane.spark.options.access import Access, with_retries
from sealane.spark.options.options import WriteOptions
from sealane.spark.sink.layout import layout_of
from sealane.spark.sink.publishing import Part, drop, publish
from sealane.spark.sink.staging import stage
from sealane.spark.workers import begin_task

_QUERY = "sql.streaming.queryId"
"""Where Spark tells a task which streaming query it works for: the same for all runs from one checkpoint."""


class Staged(WriterCommitMessage):
    """What a task tells the driver when it has written its rows."""

    def __init__(self, part: Part, query: str | None) -> None:
        self.part = part
        self.query = query


class _Writing:
    """What both writers do alike. It is made on the driver, where everything is checked, and goes to executors."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        fields = [(field.name, field.dataType.simpleString()) for field in schema]
        self.access = options.access
        self._layout = layout_of(fields, columns=options.columns, topic=options.topic)
        self._recipients = _recipients(options.access, options.seal_for)

    def write(self, rows: Iterator[pa.RecordBatch]) -> Part:
        """On an executor: have the node keep these rows, unseen."""
        begin_task()
        staged = stage(self.access, self._layout.messages(rows), self._recipients)
        return Part(staged.name, staged.batches, staged.rows, staged.bytes)


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame: all of its rows become visible when the job has done, or none of them."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        """Raises `InvalidOption` for what cannot be written."""
        self._transaction = _checked(options.transaction) or f"spark-batch/{uuid.uuid4()}"
        self._writing = _Writing(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return Staged(self._writing.write(iterator), None)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        publish(self._writing.access, self._transaction, _parts(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        drop(self._writing.access, _parts(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a streaming query, each of them once.

    Spark makes one for each micro-batch and another one to commit it: what has to be known then is in the messages.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        """Raises `InvalidOption` for what cannot be written."""
        if options.transaction is not None:
            raise InvalidOption("transaction", "is for batches; a stream's transactions are called after its query")
        self._writing = _Writing(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return Staged(self._writing.write(iterator), _query())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        # One query, or none: there are no messages when there were no tasks.
        for query in {message.query for message in messages if isinstance(message, Staged)}:
            publish(self._writing.access, f"spark/{query}", _parts(messages), epoch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        drop(self._writing.access, _parts(messages))


def _query() -> str:
    """The streaming query that this task works for: without it, two queries would take each other's rows for theirs."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY)
    if not query:
        raise SealaneError(
            f"Spark does not say which streaming query this task is of (its local property {_QUERY}), so that rows "
            "could not be written once; write in foreachBatch instead, with the option 'transaction'"
        )
    return query


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
    """Those of the tasks that have succeeded; a failed one has dropped its own."""
    return [message.part for message in messages if isinstance(message, Staged)]


def _checked(transaction: str | None) -> str | None:
    if transaction is not None and len(transaction) > TRANSACTION_ID_CHARS_MAX:
        problem = f"has {len(transaction):,} characters, an id has at most {TRANSACTION_ID_CHARS_MAX}"
        raise InvalidOption("transaction", problem)
    return transaction


def _recipients(access: Access, names: Sequence[str]) -> tuple[str, ...]:
    """Their public keys, as the node's directory has them now. Raises `RecipientNotFound`."""
    keys: list[PublicKey] = []
    for name in names:
        keys += with_retries(access, f"looking up the keys of {name!r}", partial(_public_keys, name))
    return tuple(key.pem() for key in keys)


def _public_keys(name: str, lane: SyncLane) -> list[PublicKey]:
    return lane.public_keys(name)
