"""An Avro schema that checks payloads: many at a time where its types become columns, else one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.schemas.avro.canonical import fingerprint
from sealane.schemas.avro.columns.readers import parsed, refused
from sealane.schemas.avro.columns.record_columns import HEADER_BYTES, MARK, RecordColumns
from sealane.schemas.avro.one_value import Type, Wrong, type_of
from sealane.schemas.avro.resolution import unresolved
from sealane.schemas.extras import avro_schemas
from sealane.schemas.json.depth import depth
from sealane.schemas.limits import SCHEMA_NESTING_MAX
from sealane.schemas.paths import path_of
from sealane.schemas.schema import Misfit, Problem

TYPES_MAX = 10_000
"""Types of a schema, each name replaced by what it means: so long does it take to compare two schemas."""
COLUMN_TYPES_MAX = 1_000
"""Types of a schema whose payloads are read as columns, each with its own; payloads of larger ones are walked through
one by one."""
FEW_PAYLOADS = 256
"""Fewer are sooner walked through than read as columns."""


class AvroSchema:
    """Payloads are one value each, bare or in the single-object encoding of this very schema."""

    format = "avro"

    def __init__(self, text: str) -> None:
        """Raises `InvalidSchema`."""
        if depth(text.encode()) > SCHEMA_NESTING_MAX:
            raise refused(f"lists and objects are nested more than {SCHEMA_NESTING_MAX} deep")
        self.root = parsed(text)
        self.resolvable = _known_to_avro(text)
        """The schema as the library has it."""
        self.identity = msgspec.json.encode(self.root, order="sorted")
        self._type = type_of(self.root)
        if self._type.weight > TYPES_MAX:
            raise refused(f"with its names replaced by what they mean it has more than {TYPES_MAX:,} types")
        self._header = MARK + fingerprint(self.root).to_bytes(8, "little")
        self._columns = _columns_of(self.root, self._type)

    def check(self, payloads: Sequence[bytes]) -> Misfit | None:
        if self._columns is None or len(payloads) < FEW_PAYLOADS:
            return self._first_wrong(payloads, 0)
        _, is_sound = self._columns.read(pa.array(payloads, pa.binary()))
        if is_sound.all():
            return None
        first = int(np.argmin(is_sound))
        return self._first_wrong(payloads[first : first + 1], first) or Misfit(first, "$", "it cannot be read")

    def cannot_read(self, written: AvroSchema, *, checks: bool) -> list[Problem]:
        return unresolved(self.resolvable, written.resolvable)

    def _first_wrong(self, payloads: Sequence[bytes], first: int) -> Misfit | None:
        for index, payload in enumerate(payloads, first):
            at = HEADER_BYTES if payload.startswith(self._header) else 0
            try:
                end = self._type.walk(payload, at, 0)
            except Wrong as wrong:
                return Misfit(index, path_of(reversed(wrong.inner_first)), wrong.problem)
            except IndexError:
                return Misfit(index, "$", "the payload ends before its value does")
            if end != len(payload):
                return Misfit(index, "$", "the payload goes on after its value")
        return None


def _columns_of(root: Any, type: Type) -> RecordColumns | None:
    if type.weight > COLUMN_TYPES_MAX:
        return None
    try:
        return RecordColumns(root)
    except InvalidSchema:
        return None  # Unions of several types, among others, have no columns.


def _known_to_avro(text: str) -> Any:
    schemas, _ = avro_schemas()
    from avro.errors import AvroException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of logical types that it does not know: those are ignored.
            return schemas.parse(text)
    except (
        AvroException,
        LookupError,
        ArithmeticError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise refused(f"it is no Avro schema: {' '.join(str(error).split())}") from None
