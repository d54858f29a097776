from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealane.spark.errors import InvalidOption
from sealane.spark.values.ddl import struct_of_ddl
from sealane.spark.values.spark_type import NESTING_MAX, spark_json_of, type_of_spark_json


@pytest.mark.parametrize(
    ("written", "type"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("BYTE", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("SHORT", pa.int16()),
        ("INT", pa.int32()),
        ("integer", pa.int32()),
        ("BIGINT", pa.int64()),
        ("long", pa.int64()),
        ("FLOAT", pa.float32()),
        ("REAL", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("STRING", pa.utf8()),
        ("BINARY", pa.binary()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_LTZ", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("VOID", pa.null()),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("DEC(5)", pa.decimal128(5, 0)),
        ("NUMERIC( 38 , 38 )", pa.decimal128(38, 38)),
        ("ARRAY<ARRAY<INT>>", pa.list_(pa.list_(pa.int32()))),
        ("map<string,array<int>>", pa.map_(pa.utf8(), pa.list_(pa.int32()))),
        ("STRUCT<a: INT, `b c`: STRING COMMENT 'it''s', d INT NOT NULL>", None),
        ("STRUCT<>", pa.struct([])),
    ],
)
def test_a_type_is_read_as_spark_writes_it(written: str, type: pa.DataType | None) -> None:
    if type is None:
        type = pa.struct([("a", pa.int32()), ("b c", pa.utf8()), ("d", pa.int32())])
        written = written.replace("''", "\\'")

    assert struct_of_ddl(f"x {written}, y INT") == pa.struct([("x", type), ("y", pa.int32())])
    assert struct_of_ddl(f"struct<x:{written}>") == pa.struct([("x", type)])


def test_names_that_are_words_of_the_language_are_names() -> None:
    assert struct_of_ddl("struct INT, `map` INT, comment STRING COMMENT 'x', `a``b` INT, 1st INT").names == [
        *("struct", "map", "comment", "a`b", "1st")
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at character 0: the name of a field"),
        ("a", "at character 1: a type is expected, and there is the end"),
        ("a INT b INT", "at character 6: a comma or the end is expected, and there is 'b'"),
        ("a INT,", "at character 6: the name of a field"),
        ("a MONEY", "at character 2: 'MONEY' is no type that can be read; there are void, boolean"),
        ("a ARRAY", "at character 7: '<' is expected"),
        ("a ARRAY<INT", "at character 11: '>' is expected"),
        ("a MAP<STRING>", "at character 12: ',' is expected"),
        ("a DECIMAL(39,0)", r"decimal\(39,0\) cannot be: the precision is 1 to 38"),
        ("a DECIMAL(5,6)", "the scale 0 to the precision"),
        ("a DECIMAL(x)", "a precision or scale is expected, and there is 'x'"),
        ("a INT, a STRING", "the field 'a' is there more than once"),
        ("a INT COMMENT b", "the comment between quotes is expected"),
        ("a INT; b INT", "at character 5: ';' cannot stand there"),
        ("a " + "ARRAY<" * 50_000, f"at most {NESTING_MAX} are read"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem) as refusal:
        struct_of_ddl(text)

    assert refusal.value.option == "valueSchema"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON"),
        ('{"type":"struct"}', "is no type that can be read"),
        ('{"type":"struct","fields":[{"name":"a"}]}', "a field has a name and a type"),
        ('{"type":"struct","fields":[{"name":"a","type":"interval"}]}', "'interval' is no type"),
        ('{"type":"struct","fields":[{"name":"a","type":"decimal(50,0)"}]}', "cannot be"),
        ('{"type":"array","elementType":' * 5000, "is no JSON"),
        ('{"type":"array","elementType":' * 900 + '"long"' + "}" * 900, "types within types|types are within types"),
    ],
)
def test_what_is_not_sparks_json_of_a_type_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        type_of_spark_json(text)


SIMPLE = [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.utf8(), pa.binary()]
TYPES = st.recursive(
    st.sampled_from(
        [*SIMPLE, pa.null(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.decimal128(9, 3)]
    ),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(lambda item: pa.map_(pa.utf8(), item))
        | st.dictionaries(st.text(max_size=4), inner, max_size=3).map(lambda fields: pa.struct(list(fields.items())))
    ),
    max_leaves=6,
)


@given(TYPES)
@settings(deadline=None)
def test_a_type_is_the_same_after_sparks_json(type: pa.DataType) -> None:
    assert type_of_spark_json(spark_json_of(type)) == type


@given(st.text("abc <>(),:`'\"\\ARRAYINT_0123456789", max_size=30))
@settings(deadline=None)
def test_any_text_is_a_schema_or_refused(text: str) -> None:
    try:
        assert pa.types.is_struct(struct_of_ddl(text))
    except InvalidOption:
        pass
