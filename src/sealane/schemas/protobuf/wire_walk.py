"""The bytes of one Protobuf message, walked through: where they stop being what its descriptor says.

The runtime says whether bytes can be parsed, and keeps what it does not know; what that is, and where, is found here.
"""

from __future__ import annotations

from sealane.schemas.paths import Step
from sealane.schemas.protobuf.shapes import (
    BYTES,
    ENUM,
    GROUP,
    MESSAGE,
    STRING,
    TYPE_NAMES,
    FieldShape,
    MessageShape,
    Shapes,
)

MESSAGES_NESTED_MAX = 100
"""Messages within each other in one payload: as the runtime has it."""

_VARINT, _EIGHT, _SPAN, _BEGIN, _END, _FOUR = range(6)
_BY_TYPE = {1: _EIGHT, 6: _EIGHT, 16: _EIGHT, 2: _FOUR, 7: _FOUR, 15: _FOUR, STRING: _SPAN, BYTES: _SPAN}
_BY_TYPE |= {MESSAGE: _SPAN, GROUP: _BEGIN}
_NUMBER_BITS = 64

Steps = tuple[Step, ...]


class Wrong(Exception):
    def __init__(self, steps: Steps, problem: str) -> None:
        self.steps = steps
        self.problem = problem
        super().__init__(problem)


class WireWalk:
    """Through one payload."""

    def __init__(self, shapes: Shapes, data: bytes) -> None:
        self._shapes = shapes
        self._data = data
        self._checks_text = True
        """In proto2 the bytes of a string may be any."""

    def check(self, message: MessageShape) -> None:
        """Raise `Wrong` at the first field that is not as it should be; numbers that may be there are passed over."""
        self._checks_text = message.syntax == "proto3"
        self._message(message, 0, len(self._data), (), 0, None)

    def _message(self, message: MessageShape, at: int, stop: int, steps: Steps, nested: int, group: int | None) -> int:
        """Where it ends: at `stop`, or behind the mark that ends a group."""
        if nested > MESSAGES_NESTED_MAX:
            raise Wrong(steps, f"messages are within messages more than {MESSAGES_NESTED_MAX} deep")
        places: dict[int, int] = {}
        while at < stop:
            tag, at = self._number(at, stop, steps)
            number, wire = tag >> 3, tag & 7
            if wire == _END and number == group:
                return at
            if not number or wire > _FOUR or wire == _END:
                raise Wrong(steps, f"its bytes are no message {message.name}")
            field = message.fields.get(number)
            if field is None:
                if not message.passes(number):
                    raise Wrong(steps, f"it has field number {number}, which message {message.name} does not have")
                at = self._skip(number, wire, at, stop, steps, nested)
                continue
            way: Steps = (*steps, field.name)
            if field.is_repeated:
                places[number] = places.get(number, -1) + 1
                way = (*way, places[number])
            at = self._field(field, wire, at, stop, way, nested)
        if group is not None:
            raise Wrong(steps, "its group does not end")
        return at

    def _field(self, field: FieldShape, wire: int, at: int, stop: int, steps: Steps, nested: int) -> int:
        expected = _BY_TYPE.get(field.type, _VARINT)
        is_packed = wire == _SPAN and field.is_repeated and expected in (_VARINT, _EIGHT, _FOUR)
        if wire != expected and not is_packed:
            raise Wrong(steps, f"it must be {TYPE_NAMES[field.type]}, and is written as another type")
        if field.type == GROUP:
            return self._message(self._shapes.message_of(field), at, stop, steps, nested + 1, field.number)
        if wire != _SPAN:
            return self._scalar(field, wire, at, stop, steps)
        length, at = self._number(at, stop, steps)
        end = at + length
        if end > stop:
            raise Wrong(steps, "the payload ends within it")
        if field.type == MESSAGE:
            self._message(self._shapes.message_of(field), at, end, steps, nested + 1, None)
        elif field.type == STRING and self._checks_text:
            self._text(at, end, steps)
        elif is_packed:
            while at < end:
                at = self._scalar(field, expected, at, end, steps)
        return end

    def _scalar(self, field: FieldShape, wire: int, at: int, stop: int, steps: Steps) -> int:
        if wire != _VARINT:
            return self._after(4 if wire == _FOUR else 8, at, stop, steps)
        number, at = self._number(at, stop, steps)
        if field.type == ENUM:
            enum = self._shapes.enums[field.type_name]
            signed = number - (1 << _NUMBER_BITS) if number >> (_NUMBER_BITS - 1) else number
            if enum.is_closed and signed not in enum.numbers:
                raise Wrong(steps, f"it must be one of the {len(enum.numbers)} values of its enum")
        return at

    def _text(self, at: int, end: int, steps: Steps) -> None:
        try:
            self._data[at:end].decode()
        except UnicodeDecodeError:
            raise Wrong(steps, "it must be a string, and is no UTF-8") from None

    def _skip(self, number: int, wire: int, at: int, stop: int, steps: Steps, nested: int) -> int:
        if wire == _VARINT:
            return self._number(at, stop, steps)[1]
        if wire == _SPAN:
            length, at = self._number(at, stop, steps)
            return self._after(length, at, stop, steps)
        if wire != _BEGIN:
            return self._after(4 if wire == _FOUR else 8, at, stop, steps)
        if nested > MESSAGES_NESTED_MAX:
            raise Wrong(steps, f"messages are within messages more than {MESSAGES_NESTED_MAX} deep")
        while at < stop:
            tag, at = self._number(at, stop, steps)
            if tag & 7 == _END:
                if tag >> 3 == number:
                    return at
                break
            at = self._skip(tag >> 3, tag & 7, at, stop, steps, nested + 1)
        raise Wrong(steps, "a group does not end")

    def _after(self, count: int, at: int, stop: int, steps: Steps) -> int:
        if at + count > stop:
            raise Wrong(steps, "the payload ends within it")
        return at + count

    def _number(self, at: int, stop: int, steps: Steps) -> tuple[int, int]:
        found = shift = 0
        while at < stop:
            byte = self._data[at]
            at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found & ((1 << _NUMBER_BITS) - 1), at
            shift += 7
            if shift >= _NUMBER_BITS + 6:
                break
        raise Wrong(steps, "a number in it does not end")
