"""Schemas as Spark's DDL writes them: `order_id BIGINT, tags ARRAY<STRING>, who STRUCT<name: STRING>`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pyarrow as pa

from sealane.spark.errors import InvalidOption
from sealane.spark.values.spark_type import (
    DECIMAL_DEFAULT,
    KNOWN_TYPES,
    check_nesting,
    decimal_type,
    refused,
    simple_type,
    struct_type,
)

_ALIASES = {
    "bool": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMALS = ("decimal", "dec", "numeric")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<sign>[<>(),:])
    )""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


_T = TypeVar("_T")


def struct_of_ddl(text: str) -> pa.StructType:
    """The fields that the DDL names, or those of the one `STRUCT<…>` that it is. Raises `InvalidOption`.

    `NOT NULL` and comments are understood and ignored: a field that a payload does not have is null.
    """
    reader = _Reader(text)
    if reader.follows("struct", "<"):
        whole = reader.type(0)
        reader.expect_end()
        return whole
    fields = reader.separated(lambda: reader.field(0))
    reader.expect_end()
    return struct_type(fields)


class _Reader:
    """Goes through the tokens of one text, from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[_Token] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                left = text[place:].lstrip()
                raise refused(f"at character {len(text) - len(left)}: {left[0]!r} cannot stand there")
            kind = str(found.lastgroup)
            self._tokens.append(_Token(kind, found[kind], found.start(kind)))
            place = found.end()
        self._tokens.append(_Token("end", "", len(text)))
        self._next = 0

    def follows(self, *texts: str) -> bool:
        """Whether these come next, in any case of letters; `field` names between backquotes are never one of them."""
        ahead = self._tokens[self._next : self._next + len(texts)]
        return [token.text.lower() for token in ahead] == list(texts) and all(
            token.kind in ("word", "sign") for token in ahead
        )

    def skip(self, *texts: str) -> bool:
        if not self.follows(*texts):
            return False
        self._next += len(texts)
        return True

    def expect(self, sign: str) -> None:
        if not self.skip(sign):
            raise self._unexpected(repr(sign))

    def expect_end(self) -> None:
        if self._tokens[self._next].kind != "end":
            raise self._unexpected("a comma or the end")

    def separated(self, one: Callable[[], _T]) -> list[_T]:
        found = [one()]
        while self.skip(","):
            found.append(one())
        return found

    def field(self, depth: int) -> tuple[str, pa.DataType]:
        name = self._name()
        self.skip(":")
        type = self.type(depth)
        self.skip("not", "null")
        if self.skip("comment"):
            if self._tokens[self._next].kind != "text":
                raise self._unexpected("the comment between quotes")
            self._next += 1
        return name, type

    def type(self, depth: int) -> pa.DataType:
        check_nesting(depth)
        token = self._tokens[self._next]
        if token.kind != "word":
            raise self._unexpected("a type")
        self._next += 1
        name = token.text.lower()
        if name == "array":
            self.expect("<")
            element = self.type(depth + 1)
            self.expect(">")
            return pa.list_(element)
        if name == "map":
            self.expect("<")
            key = self.type(depth + 1)
            self.expect(",")
            value = self.type(depth + 1)
            self.expect(">")
            return pa.map_(key, value)
        if name == "struct":
            self.expect("<")
            fields = [] if self.follows(">") else self.separated(lambda: self.field(depth + 1))
            self.expect(">")
            return struct_type(fields)
        if name in _DECIMALS:
            return self._decimal()
        found = simple_type(_ALIASES.get(name, name))
        if found is None:
            raise refused(f"at character {token.place}: {token.text!r} is no type that can be read; {KNOWN_TYPES}")
        return found

    def _decimal(self) -> pa.DataType:
        if not self.skip("("):
            return DECIMAL_DEFAULT
        precision = self._number()
        scale = self._number() if self.skip(",") else 0
        self.expect(")")
        return decimal_type(precision, scale)

    def _number(self) -> int:
        token = self._tokens[self._next]
        if not (token.text.isascii() and token.text.isdigit() and len(token.text) <= len("38")):
            raise self._unexpected("a precision or scale")
        self._next += 1
        return int(token.text)

    def _name(self) -> str:
        token = self._tokens[self._next]
        if token.kind not in ("word", "quoted"):
            raise self._unexpected("the name of a field (between backquotes, if it has other signs than letters)")
        self._next += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _unexpected(self, wanted: str) -> InvalidOption:
        token = self._tokens[self._next]
        found = repr(token.text) if token.text else "the end"
        return refused(f"at character {token.place}: {wanted} is expected, and there is {found}")
