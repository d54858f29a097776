from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from sealane.spark.errors import InvalidOption
from sealane.spark.values import spark_type_json, values_of
from tests.unit.spark.values.reading import read

UTC = datetime.UTC
ORDERS = (
    "order_id BIGINT, amount DOUBLE, tags ARRAY<STRING>, at TIMESTAMP, who STRUCT<name: STRING, seen: TIMESTAMP>, "
    "m MAP<STRING,INT>, price DECIMAL(10,2), day DATE, ok BOOLEAN, raw BINARY"
)
NOTHING = dict.fromkeys(["order_id", "amount", "tags", "at", "who", "m", "price", "day", "ok", "raw"])


def one(schema: str, payload: bytes | str) -> object:
    """The value of the one field of the schema; False if the payload is corrupt."""
    found = read(values_of("json", schema), [payload.encode() if isinstance(payload, str) else payload])[0]
    return False if found is None else next(iter(found.values()))


def test_every_type_is_read() -> None:
    payload = {
        "order_id": -(2**63),
        "amount": 2,
        "tags": ["a", None, "ü"],
        "at": "2024-05-06T07:08:09.5+02:00",
        "who": {"name": "Ada", "seen": "2024-05-06T07:08:09Z", "unknown": []},
        "m": {"a": 1, "b": None},
        "price": 12345678.9,
        "day": "2024-02-29",
        "ok": False,
        "raw": "aGk=",
        "not in the schema": {"a": [1, {}]},
    }
    values = values_of("json", ORDERS)

    assert read(values, [json.dumps(payload).encode(), b"{}", b' \n{"order_id" : null}\r\n']) == [
        {
            "order_id": -(2**63),
            "amount": 2.0,
            "tags": ["a", None, "ü"],
            "at": datetime.datetime(2024, 5, 6, 5, 8, 9, 500_000, UTC),
            "who": {"name": "Ada", "seen": datetime.datetime(2024, 5, 6, 7, 8, 9, 0, UTC)},
            "m": {"a": 1, "b": None},
            "price": Decimal("12345678.90"),
            "day": datetime.date(2024, 2, 29),
            "ok": False,
            "raw": b"hi",
        },
        NOTHING,
        NOTHING,
    ]


def test_no_payloads_are_no_values() -> None:
    assert read(values_of("json", ORDERS), []) == []


def test_a_message_without_a_payload_has_no_value_and_nothing_corrupt() -> None:
    assert read(values_of("json", "a INT"), [None, b'{"a":1}', None]) == [None, {"a": 1}, None]


def test_a_part_of_a_batch_is_read_as_that_part() -> None:
    payloads = pa.array([b"x", b'{"a":1}', b"y", b'{"a":2}', b"z"], pa.binary()).slice(1, 3)

    value, corrupt = values_of("json", "a INT").read(payloads)

    assert value.to_pylist() == [{"a": 1}, None, {"a": 2}]
    assert corrupt.to_pylist() == [None, b"y", None]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b'[{"a":1}]',
        b"1",
        b'{"a":1',
        b'{"a":1}}',
        b'{"a":1}{"a":2}',
        b'{"a":1}\n{"a":2}',
        b'{"a":1},',
        b'{"a":1}\0',
        b"\xef\xbb\xbf{}",
        b'{"s":"\xff"}',
        b'{"s":"\\ud800"}',
        b'{"s":"a\nb"}',
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":1/*c*/}',
        b'{"a":1},"i":0}',
        b'{"l":[1,"x"]}',
        b'{"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"z":' + b'{"a":' * 100_000,
        b"[" * 1_000_000,
    ],
    ids=lambda payload: payload[:20].decode(errors="replace"),
)
def test_what_is_not_exactly_one_object_of_the_shape_is_corrupt_and_moves_no_other_row(payload: bytes) -> None:
    values = values_of("json", "a INT, s STRING, l ARRAY<INT>")
    good = {"a": 7, "s": None, "l": None}

    assert read(values, [b'{"a":7}', payload, b'{"a":7}', payload, payload, b'{"a":7}']) == [
        *(good, None, good, None, None, good)
    ]


@pytest.mark.parametrize(
    ("type", "least", "largest"),
    [
        ("TINYINT", -(2**7), 2**7 - 1),
        ("SMALLINT", -(2**15), 2**15 - 1),
        ("INT", -(2**31), 2**31 - 1),
        ("BIGINT", -(2**63), 2**63 - 1),
    ],
)
def test_an_integer_beyond_its_type_is_corrupt_not_wrong(type: str, least: int, largest: int) -> None:
    assert one(f"a {type}", f'{{"a":{least}}}') == least
    assert one(f"a {type}", f'{{"a":{largest}}}') == largest
    assert one(f"a {type}", f'{{"a":{least - 1}}}') is False
    assert one(f"a {type}", f'{{"a":{largest + 1}}}') is False
    assert one(f"a {type}", f'{{"a":{10**400}}}') is False


@pytest.mark.parametrize("given", ["1.0", "1e2", '"1"', "true", "[1]", "{}"])
def test_what_is_written_as_something_else_is_no_integer(given: str) -> None:
    assert one("a INT", f'{{"a":{given}}}') is False


def test_numbers_too_large_for_a_floating_type_are_corrupt() -> None:
    assert one("a DOUBLE", '{"a":1e308}') == 1e308
    assert one("a DOUBLE", '{"a":1e309}') is False
    assert one("a DOUBLE", f'{{"a":{"9" * 400}}}') is False
    assert one("a FLOAT", '{"a":1e38}') == pytest.approx(1e38)
    assert one("a FLOAT", '{"a":-1e39}') is False
    assert one("a FLOAT", '{"a":NaN}') is False


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("1.5", Decimal("1.50")),
        ('"1.5"', Decimal("1.50")),
        ("-99999999.99", Decimal("-99999999.99")),
        ("1.500", Decimal("1.50")),
        ("1e3", Decimal(1000)),
        ("1.555", False),
        ("100000000", False),
        ("1e400", False),
        ("1e999999999", False),
        ("9" * 5000, False),
        ('"NaN"', False),
        ('"Infinity"', False),
        ('"x"', False),
        ("true", False),
    ],
)
def test_a_decimal_is_exact_or_corrupt(given: str, value: Decimal | bool) -> None:
    assert one("a DECIMAL(10,2)", f'{{"a":{given}}}') == value


def test_binary_is_base64() -> None:
    assert one("a BINARY", '{"a":""}') == b""
    assert one("a BINARY", '{"a":"aGk"}') is False
    assert one("a BINARY", '{"a":"!!!!"}') is False


def test_of_a_name_that_is_there_twice_the_last_counts() -> None:
    assert one("a INT", '{"a":1,"a":2}') == 2
    assert one("a MAP<STRING,INT>", '{"a":{"x":1,"x":2}}') == {"x": 2}


def test_names_are_exact_and_may_have_any_sign() -> None:
    assert one("a INT", '{"A":1}') is None
    assert one("`two words.ü` INT", '{"two words.ü":1}') == 1
    assert one("a INT", '{"\\u0061":1}') == 1


def test_misfits_of_several_columns_are_all_found() -> None:
    values = values_of("json", "p DECIMAL(3,1), t TIMESTAMP, l ARRAY<TIMESTAMP>, m MAP<STRING, STRUCT<t: TIMESTAMP>>")
    rows = [
        *(b'{"p":1.5}', b'{"p":1.55}', b'{"t":"2024-01-01T00:00:00Z"}', b'{"t":"2024-02-30T00:00:00Z"}'),
        *(b'{"l":["2024-01-01",null]}', b'{"l":["2024-01-01","x"]}', b'{"l":null}', b'{"l":[]}'),
        *(b'{"m":{"a":{"t":"2024-01-01"},"b":null}}', b'{"m":{"a":{"t":"x"},"b":null}}', b"{", b"{}"),
    ]

    found = read(values, rows)

    assert [row for row, value in enumerate(found) if value is None] == [1, 3, 5, 9, 10]


def test_values_are_the_same_after_a_journey_to_another_process() -> None:
    values = pickle.loads(pickle.dumps(values_of("json", "a INT")))

    assert read(values, [b'{"a":1}', b"x"]) == [{"a": 1}, None]


def test_a_schema_is_also_what_spark_writes_as_json() -> None:
    values = values_of("json", ORDERS)

    assert values_of("json", spark_type_json(values)).arrow_type == values.arrow_type


def test_a_schema_that_is_no_struct_or_has_no_field_is_refused() -> None:
    for schema in (
        '"long"',
        '{"type":"array","elementType":"long","containsNull":true}',
        "STRUCT<>",
        "",
        "m MAP<INT,INT>",
    ):
        with pytest.raises(InvalidOption, match="valueSchema"):
            values_of("json", schema)


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOption, match="'xml' is not known; it can be json or avro"):
        values_of("xml", "a INT")
