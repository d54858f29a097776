"""Filters (SQL WHERE): what is compiled runs on every batch, whatever is in it."""

from __future__ import annotations

import random
import re

import pyarrow as pa

from sealane.delivery.filters import EXPRESSION_BYTES_MAX, compile_filter
from sealane.errors import FilterError
from sealane.message import Limits, Row, Stamp, from_payloads, from_rows
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

SEEDS = (
    b"key = 'customer-7' AND (priority >= 7 OR headers['region'] IN ('eu', 'uk'))",
    b"headers['kind'] LIKE 'order.%' AND CAST(headers['total'] AS DOUBLE) BETWEEN 10 AND 99.5",
    b"created >= TIMESTAMP '2026-01-01T00:00:00Z' AND key IS NOT NULL",
    b"NOT (CAST(headers['n'] AS BIGINT) NOT IN (1, -2, 3) OR key NOT LIKE '_\\_%x' OR FALSE)",
    b"priority <> 5 OR headers['a'] < headers['b'] AND TRUE",
)
_PIECES = (
    *("AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "LIKE", "TRUE", "FALSE", "CAST", "AS", "BIGINT", "DOUBLE"),
    *("key", "priority", "created", "headers", "TIMESTAMP", "(", ")", "[", "]", ",", "=", "<>", "<", ">=", "-"),
    *("''", "'%'", "'_'", "'\\'", "'é'", "'n'", "0", "1", "5", "1.5", ".5", "1e3", "1e999", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "'0001-01-01T00:00:00+23:59'", "'9999-12-31T23:59:59-23:59'"),
    *("CAST(headers['n'] AS DOUBLE)", "CAST(headers['n'] AS BIGINT)", "headers['n']", "key IS NULL"),
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_]+|[0-9.]+|\s+|.", re.DOTALL)

_STAMP = Stamp(1_760_000_000_123_456, bytes(16))
_BATCHES = (
    from_payloads([b"x"] * 3, _STAMP, limits=Limits()),
    from_rows(
        [
            Row(b"x", b"customer-7", {"region": "eu", "n": "1"}, 7),
            Row(b"x", None, None, 5),
            Row(b"x", b"\xff\0", {"n": "9007199254740993", "total": "12.5", "kind": "order.1", "": "é"}, 1),
            Row(b"x", b"", {"n": "-0", "total": "1e99", "a": "1", "b": "2"}, 10),
        ],
        _STAMP,
        limits=Limits(),
    ),
)


def check(data: bytes) -> bool:
    try:
        compiled = compile_filter(data.decode("utf-8", "surrogateescape"))
    except FilterError as error:
        str(error).encode()
        return False
    for batch in _BATCHES:
        matches = compiled.matches(batch)
        assert len(matches) == len(batch)
        assert matches.type == pa.bool_()
        assert not matches.null_count
    return True


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Mostly word by word: what is no word at all is refused before anything else is looked at."""
    if choose.random() < 0.2:
        return mutate(data, choose, bytes_max=EXPRESSION_BYTES_MAX + 100)
    tokens = _TOKEN.findall(data.decode("utf-8", "replace"))
    for _ in range(choose.choice((1, 1, 2, 4))):
        if not tokens:
            break
        place = choose.randrange(len(tokens))
        kind = choose.randrange(5)
        if kind == 0:
            del tokens[place]
        elif kind == 1:
            tokens[place:place] = [choose.choice((" ", "")), choose.choice(_PIECES), choose.choice((" ", ""))]
        elif kind == 2:
            source = choose.randrange(len(tokens))
            tokens[place:place] = tokens[source : source + choose.randrange(1, 12)]
        else:
            tokens[place] = choose.choice(_PIECES)
    return "".join(tokens).encode()[: EXPRESSION_BYTES_MAX + 100]


TARGET = Target("filters", SEEDS, check, spoil)
