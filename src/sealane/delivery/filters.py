"""Filters: a SQL WHERE expression over a message's key, priority, creation time and headers, run by Arrow compute.

    key = 'customer-7' AND (priority >= 7 OR headers['region'] IN ('eu', 'uk'))
    headers['kind'] LIKE 'order.%' AND CAST(headers['total'] AS DOUBLE) BETWEEN 10 AND 99.5
    created >= TIMESTAMP '2026-01-01T00:00:00Z' AND key IS NOT NULL

The grammar, keywords in any case:

    expression := and { OR and }            and := not { AND not }            not := NOT not | predicate
    predicate  := ( expression ) | TRUE | FALSE | operand test
    test       := (= | <> | != | < | <= | > | >=) operand | IS [NOT] NULL | [NOT] IN ( literal, … )
                | [NOT] BETWEEN operand AND operand | [NOT] LIKE 'pattern'
    operand    := key | priority | created | headers['name'] | CAST(headers['name'] AS BIGINT | DOUBLE) | literal
    literal    := 'text' | number | TIMESTAMP 'ISO 8601'

SQL's three-valued logic holds: what is NULL (no key, no such header, a header that is not the number it is cast to)
makes a comparison unknown, and only what is true matches. Text compares by its UTF-8 bytes. In LIKE, % is any run and _
any one character (of a key: byte); a backslash takes the next character literally.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, final

import pyarrow as pa

from sealane.delivery.headers import header_values
from sealane.delivery.like import compile_like
from sealane.errors import FilterError
from sealane.message import Batch
from sealane.message.arrow_compute import pc

EXPRESSION_BYTES_MAX = 4096
"""A filter runs for every message that a subscription scans: longer ones belong into a topic of their own."""
NESTING_MAX = 64
"""Depth of parentheses and NOTs: bounds the recursion of parsing and running."""

_Evaluate = Callable[[pa.RecordBatch], Any]
"""Of a batch's records: an array, or a scalar that stands for every row."""

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<text>'(?:[^']|'')*')|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<symbol><>|!=|<=|>=|[=<>()\[\],-])",
    re.ASCII,
)
_COMPARISONS = {
    "=": "equal",
    "<>": "not_equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""By the names of Arrow's functions."""
_IN_TYPES = {"text": pa.utf8(), "bytes": pa.binary(), "number": pa.int64(), "time": pa.timestamp("us", "UTC")}
_BIGINT = r"\A-?[0-9]{1,18}\z"
_DOUBLE = r"\A[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?\z"
# Arrow takes tens of microseconds to make a scalar of a Python value: these and a filter's literals are made once.
# They are taken out of arrays: for the first scalar that it makes itself Arrow loads pandas, if there is one.
_UNKNOWN = pa.nulls(1, pa.bool_())[0]
_NO = pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(b"\0")], 0)[0]
_NO_TEXT = pa.nulls(1, pa.utf8())[0]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_INT64_MAX = 2**63 - 1
_DOUBLES = pa.float64()


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Operand(NamedTuple):
    """Something with a value: `kind` is text, bytes (the key), number or time; a literal has its Python value too."""

    kind: str
    evaluate: _Evaluate
    position: int
    literal: Any = None


@final
class Filter:
    """A compiled expression. Filters of the same expression are equal."""

    __slots__ = ("_evaluate", "expression")

    def __init__(self, expression: str, evaluate: _Evaluate) -> None:
        self.expression = expression
        self._evaluate = evaluate

    def matches(self, batch: Batch) -> pa.BooleanArray:
        """For each message whether it matches; never null, since unknown is no match."""
        result = self._evaluate(batch.records)
        if isinstance(result, pa.Scalar):
            return pa.repeat(pa.scalar(result.as_py() is True), len(batch))
        return pc.fill_null(result, _NO)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and other.expression == self.expression

    def __hash__(self) -> int:
        return hash(self.expression)

    def __repr__(self) -> str:
        return f"Filter({self.expression!r})"


def compile_filter(expression: str) -> Filter:
    """Parse and check an expression once; `FilterError` tells where it cannot be understood, and what was expected."""
    if not isinstance(expression, str):
        raise FilterError(repr(expression)[:200], 0, "a filter is text")
    try:
        size = len(expression.encode())
    except UnicodeEncodeError as error:
        raise FilterError(ascii(expression)[:200], error.start, "it cannot be written as UTF-8") from None
    if size > EXPRESSION_BYTES_MAX:
        problem = f"it has {size:,} bytes, the limit is {EXPRESSION_BYTES_MAX:,}"
        raise FilterError(expression[:100] + "…", 0, problem)
    return Filter(expression, _Parser(expression).parse())


class _Parser:
    """Recursive descent over the tokens; each rule returns what evaluates it."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = self._scan()
        self._next = 0
        self._depth = 0

    def parse(self) -> _Evaluate:
        evaluate = self._expression_rule()
        if self._tokens[self._next].kind != "end":
            self._refuse("AND, OR or the end")
        return evaluate

    # --- tokens -----------------------------------------------------------------------------------------------------

    def _scan(self) -> list[_Token]:
        tokens = []
        position = 0
        while position < len(self._expression):
            match = _TOKEN.match(self._expression, position)
            if match is None:
                if self._expression[position] == "'":
                    self._fail(position, "this text has no closing quote")
                self._fail(position, f"{self._expression[position]!r} is not part of the language")
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "", position))
        return tokens

    def _take(self, *wanted: str) -> _Token | None:
        """The next token, if it is one of these words or symbols."""
        token = self._tokens[self._next]
        if token.kind in ("word", "symbol") and token.text.upper() in wanted:
            self._next += 1
            return token
        return None

    def _take_kind(self, kind: str) -> _Token | None:
        token = self._tokens[self._next]
        if token.kind != kind:
            return None
        self._next += 1
        return token

    def _need(self, wanted: str) -> _Token:
        return self._take(wanted) or self._refuse(repr(wanted) if not wanted.isalpha() else wanted)

    def _refuse(self, expected: str) -> NoReturn:
        token = self._tokens[self._next]
        found = "the expression ends" if token.kind == "end" else f"there is {token.text[:40]!r}"
        self._fail(token.position, f"expected {expected}, but {found}")

    def _fail(self, position: int, problem: str) -> NoReturn:
        raise FilterError(self._expression, position, problem)

    # --- logic ------------------------------------------------------------------------------------------------------

    def _expression_rule(self) -> _Evaluate:
        parts = [self._and_rule()]
        while self._take("OR"):
            parts.append(self._and_rule())
        return parts[0] if len(parts) == 1 else _folded(pc.or_kleene, parts)

    def _and_rule(self) -> _Evaluate:
        parts = [self._not_rule()]
        while self._take("AND"):
            parts.append(self._not_rule())
        return parts[0] if len(parts) == 1 else _folded(pc.and_kleene, parts)

    def _not_rule(self) -> _Evaluate:
        token = self._tokens[self._next]
        self._depth += 1
        if self._depth > NESTING_MAX:
            self._fail(token.position, f"it is nested more than {NESTING_MAX} deep")
        evaluate = _negated(self._not_rule()) if self._take("NOT") else self._predicate()
        self._depth -= 1
        return evaluate

    def _predicate(self) -> _Evaluate:
        if self._take("("):
            inner = self._expression_rule()
            self._need(")")
            return inner
        if token := self._take("TRUE", "FALSE"):
            constant = pa.scalar(token.text.upper() == "TRUE")
            return lambda _: constant
        return self._test(self._operand())

    def _test(self, left: _Operand) -> _Evaluate:
        if token := self._take(*_COMPARISONS):
            return self._compared(getattr(pc, _COMPARISONS[token.text]), left, self._operand())
        if self._take("IS"):
            negative = self._take("NOT")
            self._need("NULL")
            return _negated(_is_null(left)) if negative else _is_null(left)
        negative = self._take("NOT")
        if self._take("IN"):
            evaluate = self._in(left)
        elif self._take("BETWEEN"):
            low = self._operand()
            self._need("AND")
            high = self._operand()
            bounds = [self._compared(pc.greater_equal, left, low), self._compared(pc.less_equal, left, high)]
            evaluate = _folded(pc.and_kleene, bounds)
        elif self._take("LIKE"):
            evaluate = self._like(left)
        else:
            self._refuse("IN, BETWEEN or LIKE" if negative else "a comparison, IS, IN, BETWEEN or LIKE")
        return _negated(evaluate) if negative else evaluate

    # --- tests ------------------------------------------------------------------------------------------------------

    def _compared(self, compare: Callable[[Any, Any], Any], left: _Operand, right: _Operand) -> _Evaluate:
        one, other = self._alike(left, right)
        if left.kind == "number":
            return lambda records: compare(*_as_one_number(one(records), other(records)))
        return lambda records: compare(one(records), other(records))

    def _alike(self, left: _Operand, right: _Operand) -> tuple[_Evaluate, _Evaluate]:
        """Both as values of one type; text becomes bytes where a key is on the other side."""
        kinds = {left.kind, right.kind}
        if kinds == {"text", "bytes"}:
            return _as_bytes(left), _as_bytes(right)
        if len(kinds) > 1:
            shown = {"bytes": "text", "time": "a time (write TIMESTAMP '…')", "number": "a number", "text": "text"}
            hint = "; CAST the header to compare it as a number" if kinds == {"text", "number"} else ""
            problem = f"{shown[right.kind]} cannot be compared with {shown[left.kind]}{hint}"
            self._fail(right.position, problem)
        return left.evaluate, right.evaluate

    def _in(self, left: _Operand) -> _Evaluate:
        self._need("(")
        choices = []
        while True:
            choice = self._operand()
            if choice.literal is None:
                self._fail(choice.position, "IN takes a list of literals")
            self._alike(left, choice)
            choices.append(choice.literal)
            if not self._take(","):
                break
        if not self._take(")"):
            self._refuse("',' or ')'")
        kind = _IN_TYPES[left.kind]
        if left.kind == "number" and any(isinstance(choice, float) for choice in choices):
            kind, choices = _DOUBLES, [float(choice) for choice in choices]
        values = pa.array([choice.encode() if left.kind == "bytes" else choice for choice in choices], kind)

        def evaluate(records: pa.RecordBatch) -> Any:
            tested = left.evaluate(records)
            found = pc.is_in(*_as_one_number(tested, values)) if left.kind == "number" else pc.is_in(tested, values)
            return pc.if_else(pc.is_valid(tested), found, _UNKNOWN)

        return evaluate

    def _like(self, left: _Operand) -> _Evaluate:
        if left.kind not in ("text", "bytes"):
            self._fail(left.position, "LIKE needs text on its left")
        token = self._take_kind("text") or self._refuse("a pattern in quotes")
        try:
            matches = compile_like(_unquoted(token.text))
        except ValueError as error:
            self._fail(token.position, str(error))
        return lambda records: matches(left.evaluate(records))

    # --- operands ---------------------------------------------------------------------------------------------------

    def _operand(self) -> _Operand:
        position = self._tokens[self._next].position
        if token := self._take_kind("text"):
            return _literal("text", pa.scalar(_unquoted(token.text)), position)
        if minus := self._take("-"):
            number = self._take_kind("number") or self._refuse("a number after '-'")
            return self._number("-" + number.text, minus.position)
        if token := self._take_kind("number"):
            return self._number(token.text, position)
        if token := self._take("KEY", "PRIORITY", "CREATED"):
            name = token.text.lower()
            kind = {"key": "bytes", "priority": "number", "created": "time"}[name]
            return _Operand(kind, lambda records: records.column(name), position)
        if self._take("HEADERS"):
            return self._header(position)
        if self._take("CAST"):
            return self._cast(position)
        if self._take("TIMESTAMP"):
            return self._timestamp(position)
        if self._take("NULL"):
            self._fail(position, "nothing equals NULL; write IS NULL or IS NOT NULL")
        return self._refuse("key, priority, created, headers['name'], CAST, or a literal")

    def _header(self, position: int) -> _Operand:
        self._need("[")
        token = self._take_kind("text") or self._refuse("a header's name in quotes")
        self._need("]")
        name = pa.scalar(_unquoted(token.text))
        return _Operand("text", lambda records: header_values(records.column("headers"), name), position)

    def _cast(self, position: int) -> _Operand:
        self._need("(")
        inner = self._tokens[self._next]
        if not self._take("HEADERS"):
            self._refuse("headers['name'], the only thing to cast")
        text = self._header(inner.position).evaluate
        self._need("AS")
        kind = self._take("BIGINT", "DOUBLE") or self._refuse("BIGINT or DOUBLE")
        self._need(")")
        shape, number = (_BIGINT, pa.int64()) if kind.text.upper() == "BIGINT" else (_DOUBLE, pa.float64())

        def evaluate(records: pa.RecordBatch) -> Any:
            # What does not look like a number becomes NULL: one odd message must not stop a subscription.
            values = text(records)
            return pc.if_else(pc.match_substring_regex(values, shape), values, _NO_TEXT).cast(number)

        return _Operand("number", evaluate, position)

    def _number(self, text: str, position: int) -> _Operand:
        if text.lstrip("-").isdigit():
            whole = int(text)
            if abs(whole) > _INT64_MAX:
                self._fail(position, "this number does not fit into 64 bits")
            return _literal("number", pa.scalar(whole, pa.int64()), position)
        return _literal("number", pa.scalar(float(text), pa.float64()), position)

    def _timestamp(self, position: int) -> _Operand:
        token = self._take_kind("text") or self._refuse("a time in quotes")
        try:
            moment = datetime.datetime.fromisoformat(_unquoted(token.text))
        except ValueError:
            self._fail(token.position, "this is not a time; write it like TIMESTAMP '2026-01-01T00:00:00Z'")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        time_us = (moment - _EPOCH) // _MICROSECOND
        return _literal("time", pa.scalar(time_us, pa.timestamp("us", "UTC")), position)


def _literal(kind: str, value: pa.Scalar, position: int) -> _Operand:
    return _Operand(kind, lambda _: value, position, literal=value.value if kind == "time" else value.as_py())


def _as_bytes(operand: _Operand) -> _Evaluate:
    if operand.kind == "bytes":
        return operand.evaluate
    if operand.literal is not None:
        value = pa.scalar(operand.literal.encode(), pa.binary())
        return lambda _: value
    return lambda records: operand.evaluate(records).cast(pa.binary())


def _as_one_number(one: Any, other: Any) -> tuple[Any, Any]:
    """Both as doubles if one of them is: a whole number of more digits than a double has is the nearest one that it
    has. Arrow by itself would refuse such a number, which anybody may put into a header.
    """
    if pa.types.is_floating(one.type) == pa.types.is_floating(other.type):
        return one, other
    return pc.cast(one, _DOUBLES, safe=False), pc.cast(other, _DOUBLES, safe=False)


def _is_null(operand: _Operand) -> _Evaluate:
    return lambda records: pc.is_null(operand.evaluate(records))


def _negated(evaluate: _Evaluate) -> _Evaluate:
    return lambda records: pc.invert(evaluate(records))


def _folded(combine: Callable[[Any, Any], Any], parts: list[_Evaluate]) -> _Evaluate:
    first, *others = parts

    def evaluate(records: pa.RecordBatch) -> Any:
        result = first(records)
        for other in others:
            result = combine(result, other(records))
        return result

    return evaluate


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")
