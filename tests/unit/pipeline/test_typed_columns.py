"""Fields of schemas as columns: wide types, names for any tool, and what two versions have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.lake.tables import Lake, typed_table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed.columns import as_columns, columns_of, merged, widened
from sealane.pipeline.typed.numbers_in_columns import hashed_type, without_numbers

NUMBER = "+49 170 1234567"


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(LakeKeys.open_or_make(tmp_path / "lake.keys"), "shop")


def struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


def test_types_are_as_wide_as_they_will_ever_be() -> None:
    inner = struct(small=pa.int32(), nothing=pa.null(), share=pa.float32())
    found = widened(struct(a=pa.int32(), b=pa.list_(inner), c=pa.map_(pa.utf8(), pa.float32()), d=pa.null()))
    wide = struct(small=pa.int64(), share=pa.float64())
    assert found == struct(a=pa.int64(), b=pa.list_(wide), c=pa.map_(pa.utf8(), pa.float64()))
    assert widened(struct(only=pa.null())) is None
    for same in (pa.bool_(), pa.utf8(), pa.binary(), pa.date32(), pa.decimal128(9, 2), pa.timestamp("us", "UTC")):
        assert widened(same) == same


def test_new_fields_come_last_also_within_others() -> None:
    old = struct(a=pa.int64(), who=struct(name=pa.utf8()), tags=pa.list_(struct(x=pa.int64())))
    new = struct(b=pa.utf8(), who=struct(age=pa.int64(), name=pa.utf8()), tags=pa.list_(struct(y=pa.utf8())))
    both = merged(old, new)
    assert both == struct(
        a=pa.int64(),
        who=struct(name=pa.utf8(), age=pa.int64()),
        tags=pa.list_(struct(x=pa.int64(), y=pa.utf8())),
        b=pa.utf8(),
    )
    assert merged(both, old) == both


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.utf8()),
        (pa.int64(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(10, 2)),
        (pa.list_(pa.int64()), pa.int64()),
        (struct(a=pa.int64()), struct(a=pa.utf8())),
        (pa.map_(pa.utf8(), pa.int64()), pa.map_(pa.utf8(), pa.utf8())),
    ],
)
def test_what_is_of_another_type_has_no_common_column(old: pa.DataType, new: pa.DataType) -> None:
    assert merged(struct(x=old), struct(x=new)) is None


def test_names_are_those_that_any_tool_takes_and_stay_when_fields_are_added() -> None:
    fields = [("id", pa.int64()), ("Date", pa.utf8()), ("net price (€)", pa.float64()), ("a.b", pa.int64())]
    names = [column.name for column in columns_of(pa.struct(fields))]
    assert names == ["value_id", "value_Date", "net_price____", "a_b"]
    later = pa.struct(
        [*fields, ("A.B", pa.int64()), ("value_id", pa.int64()), ("who", struct(x=pa.utf8(), X=pa.utf8()))]
    )
    columns = columns_of(later)
    assert [column.name for column in columns] == [*names, "A_B_2", "value_id_2", "who"]
    assert [column.name for column in columns.field("who").type] == ["x", "X_2"]


def test_values_find_their_columns_by_name_and_the_rest_is_null() -> None:
    fields = struct(id=pa.int64(), who=struct(name=pa.utf8(), age=pa.int64()), lines=pa.list_(struct(n=pa.int64())))
    rows: list[Any] = [
        {"lines": [{"n": 1}, None, {"n": 2}], "id": 7, "who": {"name": "Ann"}},
        None,
        {"lines": None, "id": None, "who": None},
    ]
    written = pa.struct(
        [("lines", pa.list_(struct(n=pa.int32()))), ("id", pa.int32()), ("who", struct(name=pa.utf8()))]
    )
    found = as_columns(pa.array(rows, written), fields, columns_of(fields))
    assert found.to_pylist() == [
        {"value_id": 7, "who": {"name": "Ann", "age": None}, "lines": [{"n": 1}, None, {"n": 2}]},
        None,
        {"value_id": None, "who": None, "lines": None},
    ]


def test_numbers_in_columns_become_what_they_become_in_documents(numbers: Numbers) -> None:
    rows: list[Any] = [
        {
            "phone": 491701234567,
            "note": NUMBER,
            "amount": 491701234567,
            "contact": {"mobile": "01701234567", "name": "01701234567"},
            "phones": ["01701234567", "none", None],
            "fax": 12,
            "extra": [("tel", "01701234567"), ("order", "01701234567")],
            "counts": [("phone", 491701234567), ("other", 491701234567)],
        },
        {"phone": None, "note": "hello", "amount": 1, "contact": None, "phones": None, "fax": None, "extra": None},
    ]
    type = struct(
        phone=pa.int64(),
        note=pa.utf8(),
        amount=pa.int64(),
        contact=struct(mobile=pa.utf8(), name=pa.utf8()),
        phones=pa.list_(pa.utf8()),
        fax=pa.float64(),
        extra=pa.map_(pa.utf8(), pa.utf8()),
        counts=pa.map_(pa.utf8(), pa.int64()),
    )
    found = without_numbers(pa.array(rows, type), numbers)
    assert found.type == hashed_type(type)
    local = numbers.hashed("01701234567")
    assert found.to_pylist() == [
        {
            "phone": numbers.hashed("491701234567"),
            "note": numbers.hashed(NUMBER),
            "amount": 491701234567,
            "contact": {"mobile": local, "name": "01701234567"},
            "phones": [local, "none", None],
            "fax": "12",
            "extra": [("tel", local), ("order", "01701234567")],
            "counts": [("phone", None), ("other", 491701234567)],
        },
        {
            "phone": None,
            "note": "hello",
            "amount": 1,
            "contact": None,
            "phones": None,
            "fax": None,
            "extra": None,
            "counts": None,
        },
    ]
    again = without_numbers(found, numbers)
    assert again.equals(found)


def test_tables_of_topics_have_names_in_sql_that_are_theirs_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for topic, version in (("shop/orders", 1), ("shop/orders", 2), ("shop/a-b", 1), ("shop/a.b", 1), ("shop/a_b_2", 1)):
        lake.path(typed_table(topic, version)).mkdir(parents=True)
    assert {table.name: table.view for table in lake.typed_tables()} == {
        "shop/a-b/v1": "typed_shop_a_b",
        "shop/a.b/v1": "typed_shop_a_b_2",
        "shop/a_b_2/v1": "typed_shop_a_b_2_2",
        "shop/orders/v2": "typed_shop_orders",
        "shop/orders/v1": "typed_shop_orders_v1",
    }
    assert [table.full_name for table in lake.tables()] == [table.full_name for table in lake.typed_tables()]
