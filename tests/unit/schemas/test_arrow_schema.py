"""Arrow schemas: payloads are streams whose schema is the same or has more, or record batches of this very schema."""

from __future__ import annotations

import base64
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealane.errors import InvalidSchema
from sealane.schemas import incompatibilities
from sealane.schemas.arrow.arrow_schema import ArrowSchema
from sealane.schemas.arrow.fields import FIELDS_MAX, TYPES_NESTED_MAX

LINES = pa.list_(pa.struct([("price", pa.float64())]))
ORDER = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.utf8()), ("lines", LINES)])
ROWS = [{"id": 1, "city": "Oslo", "lines": [{"price": 2.5}]}, {"id": 2, "city": None, "lines": []}]


def text_of(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def opened(schema: pa.Schema) -> ArrowSchema:
    return ArrowSchema(text_of(schema))


def batch_of(schema: pa.Schema, rows: Any = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(ROWS if rows is None else rows, schema=schema)


def stream(*batches: pa.RecordBatch, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def test_a_stream_and_a_bare_batch_of_the_schema_fit() -> None:
    batch = batch_of(ORDER)
    assert (
        opened(ORDER).check([stream(batch, batch), batch.serialize().to_pybytes(), stream(batch_of(ORDER, []))]) is None
    )


def test_a_stream_may_have_more_columns_in_another_order_and_metadata_of_its_own() -> None:
    wider = pa.schema([("extra", pa.int8()), *reversed(list(ORDER))], metadata={"by": "me"})
    assert opened(ORDER).check([stream(batch_of(wider))]) is None


def test_a_struct_in_a_stream_may_have_more_fields() -> None:
    lines = pa.list_(pa.struct([("price", pa.float64()), ("note", pa.utf8())]))
    wider = ORDER.set(2, pa.field("lines", lines))
    assert opened(ORDER).check([stream(batch_of(wider))]) is None


def changed(place: int, field: pa.Field) -> pa.Schema:
    return ORDER.set(place, field)


@pytest.mark.parametrize(
    ("schema", "path", "problem"),
    [
        (ORDER.remove(1), "$.city", "it is missing; it must be string"),
        (changed(1, pa.field("city", pa.int32())), "$.city", "it must be string, and is int32"),
        (changed(0, pa.field("id", pa.int64())), "$.id", "it must not be null, and may be"),
        (
            changed(2, pa.field("lines", pa.list_(pa.struct([("price", pa.float32())])))),
            "$.lines[*].price",
            "it must be double, and is float",
        ),
        (
            changed(1, pa.field("city", pa.dictionary(pa.int8(), pa.utf8()))),
            "$.city",
            "it must be string, and is dictionary",
        ),
        (ORDER.append(pa.field("id", pa.int64())), "$.id", "it is there more than once"),
    ],
)
def test_a_stream_of_another_schema_does_not_fit(schema: pa.Schema, path: str, problem: str) -> None:
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    misfit = opened(ORDER).check([stream(batch_of(ORDER)), stream(empty)])
    assert misfit is not None
    assert (misfit.index, misfit.path) == (1, path)
    assert misfit.problem.startswith(problem)


def test_a_bare_batch_says_nothing_of_its_columns_and_must_have_just_these() -> None:
    for schema in (ORDER.remove(2), ORDER.append(pa.field("extra", pa.int8()))):
        misfit = opened(ORDER).check([batch_of(schema).serialize().to_pybytes()])
        assert misfit is not None
        assert "other columns" in misfit.problem


def test_a_null_where_none_may_be_does_not_fit() -> None:
    with_nulls = batch_of(changed(0, pa.field("id", pa.int64())), [{"id": None, "city": "a", "lines": []}])
    misfit = opened(ORDER).check([with_nulls.serialize().to_pybytes()])
    assert misfit is not None
    assert (misfit.path, misfit.problem) == ("$.id", "it must not be null, and is")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-20],
        lambda data: data + b"x",
        lambda data: b"",
        lambda data: b"ARROW1" + data,
        lambda data: b"secret",
        lambda data: data[:40] + b"\xff" * 8 + data[48:],
    ],
)
def test_bytes_that_are_no_stream_do_not_fit(spoil: Any) -> None:
    misfit = opened(ORDER).check([spoil(stream(batch_of(ORDER)))])
    assert misfit is not None
    assert "secret" not in misfit.problem


def test_compressed_buffers_are_refused_before_they_are_unpacked() -> None:
    misfit = opened(ORDER).check([stream(batch_of(ORDER), compression="zstd")])
    assert misfit is not None
    assert "compressed" in misfit.problem


@given(st.integers(0, 10_000), st.integers(0, 255))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_bytes_come_there_is_a_verdict(place: int, value: int) -> None:
    data = bytearray(stream(batch_of(ORDER)))
    data[place % len(data)] = value
    opened(ORDER).check([bytes(data)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no base64!", "no base64"),
        (base64.b64encode(b"hello").decode(), "no Arrow IPC schema message"),
        (text_of(pa.schema([])), "no fields"),
        (text_of(pa.schema([("a", pa.int8()), ("a", pa.int8())])), "more than once"),
        (text_of(pa.schema([("a", pa.struct([("b", pa.int8()), ("b", pa.int8())]))])), "'b' is there more than once"),
        (text_of(pa.schema([("a", pa.dictionary(pa.int8(), pa.utf8()))])), "use a plain type"),
        (text_of(pa.schema([("a", pa.list_(pa.string_view()))])), "use a plain type"),
        (text_of(pa.schema([(f"f{number}", pa.int8()) for number in range(FIELDS_MAX + 1)])), f"{FIELDS_MAX:,}"),
    ],
)
def test_what_cannot_be_checked_is_not_taken(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        ArrowSchema(text)


def test_a_name_that_is_no_text_is_found_wherever_it_is() -> None:
    schema = pa.schema([("a", pa.struct([("price", pa.int8())]))])
    assert b"price" in schema.serialize().to_pybytes()
    changed = schema.serialize().to_pybytes().replace(b"price", b"pr\xffce")
    with pytest.raises(InvalidSchema, match="UTF-8"):
        ArrowSchema(base64.b64encode(changed).decode())


def test_types_within_types_go_so_deep_and_no_deeper() -> None:
    type = pa.int8()
    for _ in range(TYPES_NESTED_MAX):
        type = pa.list_(type)
    opened(pa.schema([("a", type)]))
    with pytest.raises(InvalidSchema, match="deep"):
        opened(pa.schema([("a", pa.list_(type))]))


def test_a_column_less_is_backward_and_a_column_more_is_forward_compatible() -> None:
    more, less = opened(ORDER), opened(ORDER.remove(1))
    assert incompatibilities("backward", more, less) == []
    assert incompatibilities("forward", less, more) == []
    assert incompatibilities("backward", less, more) == ["$.city: it is missing; it must be string (backward)"]
    assert incompatibilities("full", more, less) == ["$.city: it is missing; it must be string (forward)"]


def test_what_may_be_null_later_is_backward_compatible() -> None:
    strict, loose = opened(ORDER), opened(changed(0, pa.field("id", pa.int64())))
    assert incompatibilities("backward", strict, loose) == []
    assert incompatibilities("backward", loose, strict) == ["$.id: it must not be null, and may be (backward)"]


FIELDS = st.builds(
    pa.field, st.sampled_from("abc"), st.sampled_from([pa.int8(), pa.utf8(), LINES]), nullable=st.booleans()
)


@given(*[st.lists(FIELDS, min_size=1, max_size=3, unique_by=lambda field: field.name)] * 3)
@settings(max_examples=300, deadline=None)
def test_streams_that_fit_the_schema_before_fit_one_that_is_backward_compatible(
    old: list[pa.Field], new: list[pa.Field], more: list[pa.Field]
) -> None:
    before, after, sent = pa.schema(old), pa.schema(new), pa.schema(more)
    payload = stream(pa.RecordBatch.from_arrays([pa.array([], field.type) for field in sent], schema=sent))
    one, other = opened(before), opened(after)
    if not incompatibilities("backward", one, other) and one.check([payload]) is None:
        assert other.check([payload]) is None
    if not incompatibilities("forward", one, other) and other.check([payload]) is None:
        assert one.check([payload]) is None
