"""One payload of Avro, walked through: whether it is a value of its schema, and where it stops being one.

All of Avro is known here, recursive types too. Nothing is made of what is read, so that a few bytes cannot become many
values, and how far values may be within each other is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sealane.errors import InvalidSchema
from sealane.schemas.avro.columns import walking
from sealane.schemas.avro.columns.decimals import DIGITS_MAX, WIDTH_BYTES
from sealane.schemas.avro.names import full_name
from sealane.schemas.paths import Step

VALUES_NESTED_MAX = 100
"""Records, lists and maps within each other in one payload: deeper is refused."""
DECIMAL_DIGITS_MAX = 1_000
"""Of a decimal: comparing one with the largest that has so many takes a microsecond, and without end of some others."""

_INTS, _LONGS = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)
_MILLIS = (-(_LONGS[1] // 1_000), _LONGS[1] // 1_000)
"""What is still a long in microseconds, in which everybody counts."""
_WIDTHS = {"float": 4, "double": 8}


class Wrong(Exception):
    """The value at some place is none of its type; the steps are those from there outwards."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.inner_first: list[Step] = []
        super().__init__(problem)


class Type(Protocol):
    """A type of Avro."""

    @property
    def is_empty(self) -> bool:
        """Whether its values take no bytes."""

    @property
    def weight(self) -> int:
        """How many types it is made of, each name replaced by what it means, but for those within themselves."""

    def walk(self, data: bytes, at: int, nested: int) -> int:
        """Where the value ends that begins there. Raises `Wrong`, or `IndexError` at the end of the data."""


@dataclass(frozen=True, slots=True)
class Nothing:
    is_empty = True
    weight = 1

    def walk(self, data: bytes, at: int, nested: int) -> int:
        return at


@dataclass(frozen=True, slots=True)
class Boolean:
    is_empty = False
    weight = 1

    def walk(self, data: bytes, at: int, nested: int) -> int:
        if data[at] > 1:
            raise Wrong("it must be a boolean, 0 or 1")
        return at + 1


@dataclass(frozen=True, slots=True)
class Number:
    """An int or a long, or what is counted by one; or the place of an enum's symbol."""

    name: str
    least: int
    largest: int
    is_empty = False
    weight = 1

    def walk(self, data: bytes, at: int, nested: int) -> int:
        number, at = walking.number(data, at)
        if not self.least <= number <= self.largest:
            raise Wrong(f"it must be {self.name}, and is out of its range")
        return at


@dataclass(frozen=True, slots=True)
class Sized:
    """A float, a double, or a fixed type."""

    size: int
    precision: int | None = None
    """Of a decimal: its digits."""
    weight = 1

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    def walk(self, data: bytes, at: int, nested: int) -> int:
        stop = at + self.size
        if stop > len(data):
            raise IndexError
        _check_digits(data, at, stop, self.precision)
        return stop


@dataclass(frozen=True, slots=True)
class Bytes:
    is_text: bool = False
    precision: int | None = None
    is_empty = False
    weight = 1

    def walk(self, data: bytes, at: int, nested: int) -> int:
        length, at = walking.number(data, at)
        stop = at + length
        if length < 0 or stop > len(data):
            raise Wrong("its length is negative, or more than there is")
        if self.is_text:
            try:
                data[at:stop].decode()
            except UnicodeDecodeError:
                raise Wrong("it must be a string, and is no UTF-8") from None
        if self.precision is not None and not 0 < length <= (WIDTH_BYTES if self.precision <= DIGITS_MAX else length):
            raise Wrong(f"it must be a decimal, of at most {WIDTH_BYTES} bytes")
        _check_digits(data, at, stop, self.precision)
        return stop


@dataclass(slots=True, eq=False)
class Items:
    """An array, or a map: then each item has a name before it."""

    item: Type
    is_map: bool
    is_empty = False

    @property
    def weight(self) -> int:
        return 1 + self.item.weight

    def walk(self, data: bytes, at: int, nested: int) -> int:
        if nested >= VALUES_NESTED_MAX:
            raise Wrong(f"values are within values more than {VALUES_NESTED_MAX} deep")
        item, is_map, place = self.item, self.is_map, 0
        while True:
            count, at = walking.number(data, at)
            if count < 0:
                _, at = walking.number(data, at)
                count = -count
            if not count:
                return at
            if item.is_empty and not is_map:
                continue  # However many there are, they take no bytes, and there is nothing to be wrong with them.
            if count > len(data) - at:
                raise Wrong("it has more items than there are bytes")
            for _ in range(count):
                step: Step = place
                if is_map:
                    step, at = _name(data, at)
                try:
                    at = item.walk(data, at, nested + 1)
                except Wrong as wrong:
                    wrong.inner_first.append(step)
                    raise
                place += 1


@dataclass(slots=True, eq=False)
class Union:
    branches: Sequence[Type]
    is_empty = False

    @property
    def weight(self) -> int:
        return 1 + sum(branch.weight for branch in self.branches)

    def walk(self, data: bytes, at: int, nested: int) -> int:
        place, at = walking.number(data, at)
        if not 0 <= place < len(self.branches):
            raise Wrong(f"it must be one of the union's {len(self.branches)} types")
        return self.branches[place].walk(data, at, nested)


@dataclass(slots=True, eq=False)
class Record:
    fields: list[tuple[str, Type]] = field(default_factory=list)
    _is_empty: bool | None = None
    _weight: int | None = None

    @property
    def is_empty(self) -> bool:
        if self._is_empty is None:
            self._is_empty = False  # As good as any answer while it is asked of what is in it.
            self._is_empty = all(each.is_empty for _, each in self.fields)
        return self._is_empty

    @property
    def weight(self) -> int:
        if self._weight is None:
            self._weight = 1
            self._weight = 1 + sum(each.weight for _, each in self.fields)
        return self._weight

    def walk(self, data: bytes, at: int, nested: int) -> int:
        if nested >= VALUES_NESTED_MAX:
            raise Wrong(f"values are within values more than {VALUES_NESTED_MAX} deep")
        if self.is_empty:
            return at
        for name, each in self.fields:
            try:
                at = each.walk(data, at, nested + 1)
            except IndexError:
                raise _ending(name) from None
            except Wrong as wrong:
                wrong.inner_first.append(name)
                raise
        return at


def type_of(schema: Any) -> Type:
    """The type that a schema, parsed and known to be one, says. Raises `InvalidSchema`."""
    try:
        return _Types().of(schema, "")
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidSchema("avro", "a part of it leaves out what its type needs") from None


class _Types:
    def __init__(self) -> None:
        self._named: dict[str, Type] = {}

    def of(self, schema: Any, namespace: str) -> Type:
        if isinstance(schema, str):
            return _simple(schema, {}) or self._named[full_name(schema, None, namespace)]
        if isinstance(schema, list):
            return Union([self.of(branch, namespace) for branch in schema])
        kind = schema["type"]
        if kind == "array":
            return Items(self.of(schema["items"], namespace), False)
        if kind == "map":
            return Items(self.of(schema["values"], namespace), True)
        if kind in ("record", "error", "enum", "fixed"):
            return self._new(kind, schema, namespace)
        return (_simple(kind, schema) if isinstance(kind, str) else None) or self.of(kind, namespace)

    def _new(self, kind: str, schema: Mapping[str, Any], namespace: str) -> Type:
        name = full_name(schema["name"], schema.get("namespace"), namespace)
        if kind == "fixed":
            found: Type = Sized(int(schema["size"]), _precision(schema))
        elif kind == "enum":
            found = Number(f"one of the {len(schema['symbols'])} symbols", 0, len(schema["symbols"]) - 1)
        else:
            record = found = self._named[name] = Record()
            inner = name.rpartition(".")[0]
            record.fields += [(each["name"], self.of(each["type"], inner)) for each in schema["fields"]]
        self._named[name] = found
        return found


def _simple(name: str, schema: Mapping[str, Any]) -> Type | None:
    match name:
        case "null":
            return Nothing()
        case "boolean":
            return Boolean()
        case "int":
            return Number("an int", *_INTS)
        case "long":
            is_millis = schema.get("logicalType") in ("timestamp-millis", "local-timestamp-millis")
            return Number("a moment", *_MILLIS) if is_millis else Number("a long", *_LONGS)
        case "float" | "double":
            return Sized(_WIDTHS[name])
        case "string":
            return Bytes(is_text=True)
        case "bytes":
            return Bytes(precision=_precision(schema))
    return None


def _precision(schema: Mapping[str, Any]) -> int | None:
    """The digits of a decimal; one that cannot be is none, as Avro asks for."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return None
    if precision > DECIMAL_DIGITS_MAX:
        raise InvalidSchema("avro", f"a decimal of it has more than {DECIMAL_DIGITS_MAX:,} digits")
    return precision if precision >= 1 and 0 <= scale <= precision else None


def _check_digits(data: bytes, at: int, stop: int, precision: int | None) -> None:
    if precision is not None and abs(int.from_bytes(data[at:stop], "big", signed=True)) >= 10**precision:
        raise Wrong(f"it must be a decimal of at most {precision} digits")


def _name(data: bytes, at: int) -> tuple[str, int]:
    length, at = walking.number(data, at)
    stop = at + length
    if length < 0 or stop > len(data):
        raise Wrong("the name of an entry has a length that is negative, or more than there is")
    try:
        return data[at:stop].decode(), stop
    except UnicodeDecodeError:
        raise Wrong("the name of an entry is no UTF-8") from None


def _ending(name: str) -> Wrong:
    wrong = Wrong("the payload ends before it, or within it")
    wrong.inner_first.append(name)
    return wrong
