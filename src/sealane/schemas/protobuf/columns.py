"""Payloads that are one Protobuf message each, as columns: the runtime parses each, and fields are read one by one.

What a field is in its column:

- numbers, truths, texts and bytes are themselves; unsigned numbers need the next wider type, and one of 64 bits that
  is too large for a signed one cannot be read;
- an enum is the name of its value, and the number as text where it has no name for it;
- a message is a struct, `google.protobuf.Timestamp` a time, and a wrapper such as `google.protobuf.StringValue` its
  value;
- `repeated` is a list and `map` a map, in the order of its keys, which are data of no order.

What may be absent, as by `optional`, in a `oneof`, or as a message, is null then. Any other field of proto3 that is not
written is 0, false or empty: nobody can tell these apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.schemas.by_halves import Bools, read_by_halves, spread
from sealane.schemas.extras import protobuf
from sealane.schemas.paths import ANY, Step, path_of
from sealane.schemas.protobuf import shapes
from sealane.schemas.protobuf.protobuf_schema import Parsed, ProtobufSchema
from sealane.schemas.protobuf.shapes import refused

COLUMNS_MAX = 2_000
"""Of one schema, those within others too: messages within each other multiply, and a small text could ask for more."""
NESTING_MAX = 32
"""Messages within messages that become columns."""

TIMESTAMP = pa.timestamp("us", "UTC")
_SIGNED_32, _UNSIGNED_32, _64 = (5, 15, 17), (7, 13), (3, 4, 6, 16, 18)
_SCALARS: dict[int, pa.DataType] = {
    1: pa.float64(),
    2: pa.float32(),
    shapes.BOOL: pa.bool_(),
    shapes.STRING: pa.utf8(),
    shapes.BYTES: pa.binary(),
    **dict.fromkeys(_SIGNED_32, pa.int32()),
    **dict.fromkeys((*_UNSIGNED_32, *_64), pa.int64()),
}
"""By the types of descriptor.proto."""
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"
_MICROSECONDS = 1_000_000
_NANOSECONDS = 1_000
"""Of a microsecond."""
_UNREADABLE = (OverflowError, pa.ArrowInvalid, UnicodeDecodeError)
"""A number that no column can have, or a text of proto2 that is no UTF-8."""

Steps = tuple[Step, ...]
Values = Sequence[Any]
"""What the runtime has of a field, message by message; None where it is absent."""


class MessageColumns:
    """Reads payloads of one message each."""

    def __init__(self, schema: ProtobufSchema, *, leaves_out: bool = False) -> None:
        """A message that holds itself has no columns: the schema is refused by `InvalidSchema`, or, with `leaves_out`,
        is read without the field of its outermost message that leads there.
        """
        self._schema = schema
        self._record = _Columns(leaves_out).outermost(schema.descriptor)
        self.arrow_type: pa.StructType = self._record.arrow_type

    def read(self, payloads: pa.Array, *, passes: bool = True) -> tuple[pa.Array, Bools]:
        """The messages of a binary array, null where a payload is not sound; and which of them are.

        Without `passes` one is not sound either if it has numbers that the schema passes over.
        """
        found = map(self._parsed, payloads.to_pylist())
        messages = [one.message if one is not None and (one.is_whole or passes) else None for one in found]
        is_sound = np.fromiter((each is not None for each in messages), np.bool_, len(messages))
        sound = [each for each in messages if each is not None]
        pieces, is_read = read_by_halves(sound, self._record.array, _UNREADABLE)
        is_sound[is_sound] = is_read
        return spread(pieces, is_sound, self.arrow_type), is_sound

    def _parsed(self, payload: bytes | None) -> Parsed | None:
        found = None if payload is None else self._schema.parse(payload)
        return found if isinstance(found, Parsed) else None


class _Reader(Protocol):
    """Makes a column of values."""

    @property
    def arrow_type(self) -> pa.DataType: ...

    def array(self, values: Values) -> pa.Array: ...


@dataclass(frozen=True)
class _Scalar:
    arrow_type: pa.DataType

    def array(self, values: Values) -> pa.Array:
        return pa.array(values, self.arrow_type)


@dataclass(frozen=True)
class _Enum:
    names: dict[int | None, str | None]
    arrow_type = pa.utf8()

    def array(self, values: Values) -> pa.Array:
        known = self.names
        return pa.array([known[value] if value in known else str(value) for value in values], pa.utf8())


@dataclass(frozen=True)
class _Moment:
    """Of nanoseconds, which columns do not have, the whole microseconds stay."""

    arrow_type = TIMESTAMP

    def array(self, values: Values) -> pa.Array:
        since_1970 = [
            None if value is None else value.seconds * _MICROSECONDS + value.nanos // _NANOSECONDS for value in values
        ]
        return pa.array(since_1970, pa.int64()).view(TIMESTAMP)


@dataclass(frozen=True)
class _Wrapped:
    value: _Reader

    @property
    def arrow_type(self) -> pa.DataType:
        return self.value.arrow_type

    def array(self, values: Values) -> pa.Array:
        return self.value.array([None if value is None else value.value for value in values])


@dataclass(frozen=True)
class _Field:
    """Where in a message a value is found."""

    name: str
    value: _Reader
    has: Any
    """What tells whether a message has a field; None where nobody can tell."""

    @property
    def arrow_type(self) -> pa.DataType:
        return self.value.arrow_type

    def of(self, messages: Values) -> pa.Array:
        values: Iterable[Any] = map(attrgetter(self.name), messages)
        if self.has is not None:
            is_there = map(self.has, messages, repeat(self.name))
            values = (value if there else None for value, there in zip(values, is_there, strict=True))
        return self.value.array(list(values))


@dataclass(frozen=True)
class _List:
    name: str
    item: _Reader

    @property
    def arrow_type(self) -> pa.ListType:
        return pa.list_(self.item.arrow_type)

    def of(self, messages: Values) -> pa.Array:
        lists = list(map(attrgetter(self.name), messages))
        items = self.item.array(list(chain.from_iterable(lists)))
        return pa.Array.from_buffers(self.arrow_type, len(lists), [None, _offsets(lists)], children=[items])


@dataclass(frozen=True)
class _Map:
    name: str
    key: _Reader
    item: _Reader

    @property
    def arrow_type(self) -> pa.MapType:
        return pa.map_(self.key.arrow_type, self.item.arrow_type)

    def of(self, messages: Values) -> pa.Array:
        maps = list(map(attrgetter(self.name), messages))
        pairs = [pair for each in maps for pair in sorted(each.items(), key=itemgetter(0))]
        keys = self.key.array([key for key, _ in pairs])
        items = self.item.array([item for _, item in pairs])
        type = self.arrow_type
        entry = pa.struct([type.key_field, type.item_field])
        entries = pa.Array.from_buffers(entry, len(pairs), [None], children=[keys, items])
        return pa.Array.from_buffers(type, len(maps), [None, _offsets(maps)], children=[entries])


def _offsets(lists: Sequence[Any]) -> pa.Buffer:
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("more items than a column can have")
    return pa.py_buffer(np.concatenate(([0], ends)).astype(np.int32))


@dataclass(frozen=True)
class _Record:
    fields: tuple[_Field | _List | _Map, ...]
    empty: Any
    """A message without anything, to read where there is none."""

    @property
    def arrow_type(self) -> pa.StructType:
        return pa.struct([(field.name, field.arrow_type) for field in self.fields])

    def array(self, values: Values) -> pa.Array:
        is_absent = np.fromiter((value is None for value in values), np.bool_, len(values))
        mask = pa.array(is_absent) if is_absent.any() else None
        if mask is not None:
            values = [self.empty if value is None else value for value in values]
        type = self.arrow_type
        if not self.fields:
            validity = None if mask is None else pa.array(~is_absent).buffers()[1]
            return pa.Array.from_buffers(type, len(values), [validity])
        return pa.StructArray.from_arrays([field.of(values) for field in self.fields], fields=list(type), mask=mask)


class _Columns:
    """Builds what reads a message, by the runtime's descriptors."""

    def __init__(self, leaves_out: bool) -> None:
        self._leaves_out = leaves_out
        self._classes = protobuf()[2]
        self._count = 0

    def outermost(self, message: Any) -> _Record:
        fields = []
        for field in message.fields:
            before = self._count
            try:
                fields.append(self._field(field, (field.name,), frozenset({message.full_name})))
            except InvalidSchema:
                if not self._leaves_out:
                    raise
                self._count = before
        if not fields:
            raise refused("its message has no field that could be a column")
        return _Record(tuple(fields), self._classes.GetMessageClass(message)())

    def _field(self, field: Any, steps: Steps, around: frozenset[str]) -> _Field | _List | _Map:
        if not field.is_repeated:
            has = self._classes.GetMessageClass(field.containing_type).HasField if field.has_presence else None
            return _Field(field.name, self._reader(field, steps, around), has)
        within = (*steps, ANY)
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            key, item = (self._reader(message.fields_by_name[name], within, around) for name in ("key", "value"))
            return _Map(field.name, key, item)
        return _List(field.name, self._reader(field, within, around))

    def _reader(self, field: Any, steps: Steps, around: frozenset[str]) -> _Reader:
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise refused(f"it would have more than {COLUMNS_MAX:,} columns")
        if field.enum_type is not None:
            # Of several names for one number the first counts.
            names = {value.number: value.name for value in reversed(field.enum_type.values)}
            return _Enum({None: None, **names})
        if field.message_type is not None:
            return self._message(field.message_type, steps, around)
        return _Scalar(_SCALARS[field.type])

    def _message(self, message: Any, steps: Steps, around: frozenset[str]) -> _Reader:
        name = message.full_name
        if name == _TIMESTAMP_MESSAGE:
            return _Moment()
        if name in _WRAPPERS:
            return _Wrapped(_Scalar(_SCALARS[message.fields_by_name["value"].type]))
        if name in around:
            raise refused(f"at {path_of(steps)}: the message {name} holds itself; recursive messages have no columns")
        if len(around) >= NESTING_MAX:
            raise refused(f"at {path_of(steps)}: messages are within messages more than {NESTING_MAX} deep")
        fields = [self._field(field, (*steps, field.name), around | {name}) for field in message.fields]
        return _Record(tuple(fields), self._classes.GetMessageClass(message)())
