"""An Arrow schema that checks payloads: by comparing schemas, and by validating what the buffers hold."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from sealane.errors import InvalidBatch
from sealane.message.ipc_message import inspect
from sealane.schemas.arrow.fields import all_unread, check_fields, check_names, refused
from sealane.schemas.arrow.messages import messages_in
from sealane.schemas.paths import path_of
from sealane.schemas.schema import Misfit, Problem

_ARROW_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, KeyError, MemoryError)


class Opened(NamedTuple):
    """A payload that fits."""

    schema: pa.Schema
    """Its own, or the topic's if it has none."""
    batches: list[pa.RecordBatch]
    """What their buffers hold was validated."""


class ArrowSchema:
    """Payloads are one IPC stream each, whose schema is this one or has more columns; or one record-batch message
    alone, which is of this very schema.
    """

    format = "arrow"

    def __init__(self, text: str) -> None:
        """`text` is an IPC schema message in base64. Raises `InvalidSchema`."""
        self.schema = _schema_in(text)
        try:
            self._check()
            empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        except UnicodeDecodeError:
            raise refused("the name of a field is no UTF-8") from None
        except pa.ArrowException:
            raise refused("it has a type of which Arrow can make no column") from None
        self.identity = self.schema.serialize().to_pybytes()
        self._parts = inspect(memoryview(empty.serialize()))[1:3]
        """The number of nodes and of buffers that a record batch has."""

    def _check(self) -> None:
        if not self.schema.names:
            raise refused("it has no fields")
        check_names(self.schema.names)
        check_fields(self.schema)

    def check(self, payloads: Sequence[bytes]) -> Misfit | None:
        for index, payload in enumerate(payloads):
            found = self.open(payload, index)
            if isinstance(found, Misfit):
                return found
        return None

    def open(self, payload: bytes, index: int = 0) -> Opened | Misfit:
        """What a payload holds, without a copy of it; or why it does not fit, under this index."""
        try:
            found = self._opened(payload)
        except InvalidBatch as error:
            found = Problem("$", error.problem)
        except UnicodeDecodeError:
            found = Problem("$", "the name of a column is no UTF-8")
        return Misfit(index, found.path, found.text) if isinstance(found, Problem) else found

    def cannot_read(self, written: ArrowSchema, *, checks: bool) -> list[Problem]:
        return list(all_unread(list(self.schema), list(written.schema), ()))

    def _opened(self, payload: bytes) -> Opened | Problem:
        messages = list(messages_in(memoryview(payload)))
        if not messages:
            return Problem("$", "it has no Arrow message")
        schema = _stream_schema(messages[0])
        if schema is None:
            if len(messages) > 1:
                return Problem("$", "it has several messages, and the first is not their schema")
            if inspect(messages[0])[1:3] != self._parts:
                return Problem("$", "it is a record batch without its schema, and has other columns than the topic's")
            return _batches(messages, self.schema)
        for problem in all_unread(list(self.schema), list(schema), ()):
            return problem
        return _batches(messages[1:], schema)


def _schema_in(text: str) -> pa.Schema:
    try:
        data = base64.b64decode(text, validate=True)
        return pa.ipc.read_schema(pa.py_buffer(data)).remove_metadata()
    except binascii.Error:
        raise refused("its text is no base64; it is the bytes of an Arrow IPC schema message in that form") from None
    except _ARROW_ERRORS:
        raise refused("its bytes are no Arrow IPC schema message, as `pyarrow.Schema.serialize` makes one") from None


def _stream_schema(message: memoryview) -> pa.Schema | None:
    """The schema that a message is; None if it is something else."""
    try:
        found = pa.ipc.read_message(pa.py_buffer(message))
        if found.type != "schema":
            return None
        return pa.ipc.read_schema(found)
    except _ARROW_ERRORS:
        raise InvalidBatch("its first message cannot be read") from None


def _batches(messages: Sequence[memoryview], schema: pa.Schema) -> Opened | Problem:
    """Record batches of a schema. Raises `InvalidBatch` for bytes that Arrow is not even shown."""
    found = []
    for message in messages:
        inspect(message)
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
            batch.validate(full=True)
        except _ARROW_ERRORS:
            return Problem("$", "a record batch in it cannot be read with its schema")
        for field, column in zip(schema, batch.columns, strict=True):
            if not field.nullable and column.null_count:
                return Problem(path_of((field.name,)), "it must not be null, and is")
        found.append(batch)
    return Opened(schema, found)
