"""Filters against a reference: the same expression tree, written as SQL and evaluated message by message in Python."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.delivery.filters import EXPRESSION_BYTES_MAX, NESTING_MAX, compile_filter
from sealane.errors import FilterError
from sealane.message import Batch, Limits, Row, Stamp, from_payloads, from_rows

LIMITS = Limits()
CREATED_US = 1_767_225_600_000_000
STAMP = Stamp(CREATED_US, bytes(16))

# --- the reference --------------------------------------------------------------------------------------------------

Value = Callable[[Row], Any]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Term:
    """A piece of SQL and what it means for one row; None is NULL, or unknown."""

    sql: str
    of: Value


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def neither(value: bool | None) -> bool | None:
    return None if value is None else not value


def either(left: bool | None, right: bool | None) -> bool | None:
    return neither(both(neither(left), neither(right)))


def compared(sign: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, bytes) != isinstance(right, bytes):
        left, right = (part if isinstance(part, bytes) else part.encode() for part in (left, right))
    return COMPARISONS[sign](left, right)


def like(text: str | bytes | None, pattern: str) -> bool | None:
    if text is None:
        return None
    pieces = []
    letters = iter(pattern)
    for letter in letters:
        if letter == "\\":
            pieces.append(re.escape(next(letters, "\\")))
        else:
            pieces.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
    expression = "".join(pieces)
    if isinstance(text, bytes):
        return re.fullmatch(expression.encode(), text, re.DOTALL) is not None
    return re.fullmatch(expression, text, re.DOTALL) is not None


def header(row: Row, name: str) -> str | None:
    return (row.headers or {}).get(name)


def as_bigint(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else None


def as_double(text: str | None) -> float | None:
    shape = r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?"
    return float(text) if text is not None and re.fullmatch(shape, text) else None


# --- what hypothesis makes ------------------------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "ab", "é", "", "it's", "a\nb", "a.b", "A", "%", "a%"])
names = st.sampled_from(["a", "n", "it's"])
patterns = st.text(st.sampled_from("ab%_.é\\\n"), max_size=4)
numbers = st.sampled_from(["1", "5", "-3", "7.5", ".5", "5.", "1e1", "0"])
texts_of_numbers = st.sampled_from(["1", "5", "-3", "7.5", "+5", ".5", "1e1", "x", "", "nan", "0x5", "9" * 30, " 5"])

text_columns = st.one_of(
    st.just(Term("key", lambda row: row.key)),
    names.map(lambda name: Term(f"headers[{quoted(name)}]", lambda row: header(row, name))),
)
texts = st.one_of(text_columns, words.map(lambda word: Term(quoted(word), lambda row: word)))
number_literals = numbers.map(
    lambda number: Term(number, lambda row: float(number) if set(number) & set(".e") else int(number))
)
number_columns = st.one_of(
    st.just(Term("priority", lambda row: row.priority)),
    st.just(Term("CAST(headers['n'] AS BIGINT)", lambda row: as_bigint(header(row, "n")))),
    st.just(Term("cast(headers['n'] as double)", lambda row: as_double(header(row, "n")))),
)
numerics = st.one_of(number_columns, number_literals)
times = st.sampled_from(
    [
        Term("created", lambda row: CREATED_US),
        Term("TIMESTAMP '2026-01-01T00:00:00Z'", lambda row: CREATED_US),
        Term("timestamp '2026-01-01 01:00:00+01:00'", lambda row: CREATED_US),
        Term("TIMESTAMP '2026-01-01T00:00:00.000001'", lambda row: CREATED_US + 1),
        Term("TIMESTAMP '2025-12-31'", lambda row: CREATED_US - 86_400_000_000),
    ]
)


@st.composite
def comparisons(draw: st.DrawFn) -> Term:
    side = draw(st.sampled_from([texts, numerics, times]))
    left, right, sign = draw(side), draw(side), draw(st.sampled_from(sorted(COMPARISONS)))
    return Term(f"{left.sql} {sign} {right.sql}", lambda row: compared(sign, left.of(row), right.of(row)))


@st.composite
def memberships(draw: st.DrawFn) -> Term:
    left, literals = draw(
        st.sampled_from([(texts, words.map(lambda w: Term(quoted(w), lambda row: w))), (numerics, number_literals)])
    )
    tested, choices = draw(left), draw(st.lists(literals, min_size=1, max_size=4))

    def found(row: Row) -> bool | None:
        result: bool | None = False
        for choice in choices:
            result = either(result, compared("=", tested.of(row), choice.of(row)))
        return result

    listed = ", ".join(choice.sql for choice in choices)
    if draw(st.booleans()):
        return Term(f"{tested.sql} NOT IN ({listed})", lambda row: neither(found(row)))
    return Term(f"{tested.sql} in ({listed})", found)


@st.composite
def ranges(draw: st.DrawFn) -> Term:
    side = draw(st.sampled_from([texts, numerics, times]))
    tested, low, high = draw(side), draw(side), draw(side)

    def inside(row: Row) -> bool | None:
        value = tested.of(row)
        return both(compared(">=", value, low.of(row)), compared("<=", value, high.of(row)))

    if draw(st.booleans()):
        return Term(f"{tested.sql} NOT BETWEEN {low.sql} AND {high.sql}", lambda row: neither(inside(row)))
    return Term(f"{tested.sql} between {low.sql} and {high.sql}", inside)


@st.composite
def likes(draw: st.DrawFn) -> Term:
    tested, pattern = draw(texts), draw(patterns)
    if draw(st.booleans()):
        return Term(f"{tested.sql} NOT LIKE {quoted(pattern)}", lambda row: neither(like(tested.of(row), pattern)))
    return Term(f"{tested.sql} LIKE {quoted(pattern)}", lambda row: like(tested.of(row), pattern))


null_tests = st.builds(
    lambda term, no: Term(f"{term.sql} IS {'NOT ' if no else ''}NULL", lambda row: (term.of(row) is None) is not no),
    st.one_of(texts, numerics, times),
    st.booleans(),
)
constants = st.sampled_from([Term("TRUE", lambda row: True), Term("false", lambda row: False)])


def combined(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    def conjunction(one: Term, other: Term) -> Term:
        return Term(f"({one.sql}) AND ({other.sql})", lambda row: both(one.of(row), other.of(row)))

    def disjunction(one: Term, other: Term) -> Term:
        return Term(f"({one.sql} OR {other.sql})", lambda row: either(one.of(row), other.of(row)))

    def negation(one: Term) -> Term:
        return Term(f"NOT ({one.sql})", lambda row: neither(one.of(row)))

    return st.one_of(
        st.builds(conjunction, inner, inner), st.builds(disjunction, inner, inner), st.builds(negation, inner)
    )


expressions = st.recursive(
    st.one_of(comparisons(), memberships(), ranges(), likes(), null_tests, constants), combined, max_leaves=6
)
rows = st.builds(
    Row,
    payload=st.just(b""),
    key=st.none() | words.map(str.encode) | st.just(b"\xff"),
    headers=st.none() | st.fixed_dictionaries({}, optional={"a": words, "n": texts_of_numbers, "it's": words}),
    priority=st.integers(1, 10),
    expires_us=st.none(),
    deliver_at_us=st.none(),
    id=st.none(),
)


@settings(max_examples=600)
@given(expressions, st.lists(rows, min_size=1, max_size=6), st.integers(0, 3))
def test_a_filter_matches_what_sql_says_row_by_row(term: Term, messages: list[Row], skipped: int) -> None:
    batch = from_rows(messages, STAMP, limits=LIMITS)
    expected = [term.of(row) is True for row in messages]
    matched = compile_filter(term.sql).matches(batch)
    assert isinstance(matched, pa.BooleanArray)
    assert matched.to_pylist() == expected
    part = batch.slice(min(skipped, len(batch)), len(batch))
    assert compile_filter(term.sql).matches(part).to_pylist() == expected[skipped:]


# --- sentences ------------------------------------------------------------------------------------------------------


def matching(expression: str, *messages: Row) -> list[int]:
    batch = from_rows(messages, STAMP, limits=LIMITS)
    return [place for place, match in enumerate(compile_filter(expression).matches(batch).to_pylist()) if match]


def test_and_binds_tighter_than_or_and_not_tighter_than_both() -> None:
    low, high = Row(b"", priority=1), Row(b"", priority=9)
    assert matching("priority = 1 OR priority = 9 AND FALSE", low, high) == [0]
    assert matching("NOT priority = 1 AND TRUE", low, high) == [1]
    assert matching("NOT NOT priority = 1", low, high) == [0]


def test_what_is_null_matches_neither_a_test_nor_its_opposite() -> None:
    for test in ("key = 'a'", "key IN ('a')", "key LIKE 'a%'", "key BETWEEN 'a' AND 'b'", "headers['x'] > 'a'"):
        assert matching(test, Row(b"")) == matching(f"NOT ({test})", Row(b"")) == []


def test_a_header_that_is_not_a_number_is_null_when_cast() -> None:
    messages = [Row(b"", headers={"n": text}) for text in ("7", "seven", "7.5")]
    assert matching("CAST(headers['n'] AS BIGINT) = 7", *messages) == [0]
    assert matching("CAST(headers['n'] AS DOUBLE) > 7", *messages) == [2]
    assert matching("CAST(headers['n'] AS BIGINT) IS NULL", *messages) == [1, 2]


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(headers['n'] AS BIGINT) > 1.5",
        "CAST(headers['n'] AS DOUBLE) >= 9007199254740993",
        "CAST(headers['n'] AS DOUBLE) IN (9007199254740993)",
        "CAST(headers['n'] AS BIGINT) IN (9007199254740993, 0.5)",
        "CAST(headers['n'] AS DOUBLE) BETWEEN 9007199254740993 AND 9223372036854775807",
        "CAST(headers['n'] AS BIGINT) = CAST(headers['n'] AS DOUBLE) AND headers['n'] <> '1'",
    ],
)
def test_a_whole_number_that_no_double_is_compares_as_the_nearest_one(expression: str) -> None:
    assert matching(expression, Row(b"", headers={"n": "9007199254740993"}), Row(b"", headers={"n": "1"})) == [0]


def test_a_key_of_any_bytes_is_compared_by_its_bytes() -> None:
    keys = [Row(b"", key=b"\xff\x00"), Row(b"", key="é".encode()), Row(b"", key=b"")]
    assert matching("key = 'é'", *keys) == [1]
    assert matching("key LIKE '__'", *keys) == [0, 1]
    assert matching("key = ''", *keys) == [2]


def test_words_are_read_in_any_case_and_spacing() -> None:
    assert matching("pRiOrItY\n>=\t5 aNd Key iS nUlL", Row(b"")) == [0]


def test_the_headers_of_a_batch_without_any_are_null() -> None:
    batch = from_payloads([b"a", b"b"], STAMP, limits=LIMITS)
    assert compile_filter("headers['a'] IS NULL").matches(batch).to_pylist() == [True, True]
    assert compile_filter("headers['a'] = 'x'").matches(batch).to_pylist() == [False, False]


def test_an_expression_without_columns_holds_for_all_or_none() -> None:
    batch = from_payloads([b"a", b"b"], STAMP, limits=LIMITS)
    assert compile_filter("1 < 2").matches(batch).to_pylist() == [True, True]
    assert compile_filter("'a' IN ('b', 'c')").matches(batch).to_pylist() == [False, False]


def test_an_empty_batch_has_no_matches() -> None:
    batch: Batch = from_payloads([b"a"], STAMP, limits=LIMITS).slice(1, 1)
    assert compile_filter("headers['a'] = 'x' OR TRUE").matches(batch).to_pylist() == []


def test_a_filter_tells_its_expression_and_equals_its_like() -> None:
    one = compile_filter("priority > 5")
    assert one.expression == "priority > 5"
    assert one == compile_filter("priority > 5")
    assert one != compile_filter("priority > 6")
    assert len({one, compile_filter("priority > 5")}) == 1


@pytest.mark.parametrize(
    ("expression", "position", "problem"),
    [
        ("", 0, "the expression ends"),
        ("priority", 8, "expected a comparison"),
        ("priority > ", 11, "expected key, priority"),
        ("priority > 'high'", 11, "cannot be compared"),
        ("key = 5", 6, "cannot be compared"),
        ("headers['n'] > 5", 15, "CAST"),
        ("created > '2026-01-01'", 10, "TIMESTAMP"),
        ("(key = 'a'", 10, "expected ')'"),
        ("key = 'a')", 9, "expected AND, OR or the end"),
        ("key = 'a", 6, "no closing quote"),
        ("headers[a] = 'b'", 8, "header's name in quotes"),
        ("headers.a = 'b'", 7, "not part of the language"),
        ("payload = 'x'", 0, "expected key, priority"),
        ("key = NULL", 6, "IS NULL"),
        ("key IN ()", 8, "expected key"),
        ("key IN ('a' 'b')", 12, "',' or ')'"),
        ("key IN (key)", 8, "list of literals"),
        ("key NOT 'a'", 8, "IN, BETWEEN or LIKE"),
        ("key IS 'a'", 7, "NULL"),
        ("key LIKE 5", 9, "pattern in quotes"),
        ("priority LIKE '5'", 0, "LIKE needs text"),
        ("priority BETWEEN 1 OR 2", 19, "AND"),
        ("CAST(key AS BIGINT) = 1", 5, "headers['name']"),
        ("CAST(headers['a'] AS TEXT) = 'x'", 21, "BIGINT or DOUBLE"),
        ("created > TIMESTAMP 'soon'", 20, "not a time"),
        ("priority = 9999999999999999999", 11, "64 bits"),
        ("priority = - key", 13, "number after '-'"),
        ("priority = 5; DROP TABLE", 12, "not part of the language"),
        ("priority = 1 + 1", 13, "not part of the language"),
        ("__import__('os')", 0, "expected key"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(expression: str, position: int, problem: str) -> None:
    with pytest.raises(FilterError, match=re.escape(problem)) as caught:
        compile_filter(expression)
    assert caught.value.position == position
    assert caught.value.expression == expression


@given(st.text(max_size=60) | st.text(st.sampled_from("key priority()'=<>[]headersANDORNOT,-5."), max_size=60))
def test_any_text_compiles_or_is_refused(expression: str) -> None:
    try:
        compiled = compile_filter(expression)
    except FilterError:
        return
    compiled.matches(from_payloads([b"a"], STAMP, limits=LIMITS))


def test_an_expression_may_be_as_long_as_the_limit_and_no_longer() -> None:
    fitting = "key = '" + "x" * (EXPRESSION_BYTES_MAX - 8) + "'"
    compile_filter(fitting)
    with pytest.raises(FilterError, match="4,097 bytes, the limit is 4,096"):
        compile_filter(fitting + " ")


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("NOT ", "")])
def test_an_expression_may_be_nested_as_deep_as_the_limit_and_no_deeper(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return opening * (depth - 1) + "TRUE" + closing * (depth - 1)

    compile_filter(nested(NESTING_MAX))
    with pytest.raises(FilterError, match="nested more than 64 deep"):
        compile_filter(nested(NESTING_MAX + 1))


def test_many_terms_side_by_side_are_not_nested() -> None:
    expression = " OR ".join(["priority = 1"] * 200)
    assert matching(expression, Row(b"", priority=1)) == [0]


def test_a_pattern_of_many_runs_takes_no_time_to_speak_of() -> None:
    pattern = "%a" * 40 + "b"
    assert matching(f"key LIKE '{pattern}'", Row(b"", key=b"a" * 1000)) == []


@pytest.mark.parametrize("expression", [None, 5, b"key = 'a'"])
def test_what_is_not_text_is_refused(expression: Any) -> None:
    with pytest.raises(FilterError, match="text"):
        compile_filter(expression)


def test_text_that_utf_8_cannot_hold_is_refused() -> None:
    with pytest.raises(FilterError, match="UTF-8"):
        compile_filter("key = '\ud800'")


def test_times_compare_in_utc() -> None:
    moment = datetime.datetime.fromtimestamp(CREATED_US / 1e6, tz=datetime.UTC)
    assert matching(f"created = TIMESTAMP '{moment.isoformat()}'", Row(b"")) == [0]
    assert matching("created > TIMESTAMP '2026-01-01T00:30:00+01:00'", Row(b"")) == [0]
