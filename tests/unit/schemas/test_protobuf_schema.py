"""Protobuf schemas: payloads are one message each, nothing in them may be unknown, and which may follow which."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sealane.errors import InvalidSchema
from sealane.schemas import incompatibilities
from sealane.schemas.protobuf.protobuf_schema import COMPILED_BYTES_MAX, ProtobufSchema
from sealane.schemas.protobuf.wire_walk import MESSAGES_NESTED_MAX
from tests.unit.schemas.protobuf_files import TYPES, enum, field, message, schema_of

LINE = message("Line", field("price", 1, "double"), field("note", 2, "string"))
ORDER = message(
    "M",
    field("id", 1, "int64"),
    field("city", 2, "string"),
    field("sizes", 3, "int32", "repeated"),
    field("lines", 4, "message", "repeated", of=".Line"),
    field("next", 5, "message", of=".M"),
    reserved=[(9, 10), (20, 26)],
)


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def span(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x08\x01" + span(2, b"Oslo"),
        b"\x18\x01\x18\x02",
        span(3, b"\x01\x02"),
        span(4, b"\x09" + bytes(8)),
        span(5, b"\x08\x07"),
        pytest.param(b"\x48\x01", id="a reserved number"),
        pytest.param(span(25, b"anything"), id="one of a reserved range"),
        pytest.param(b"\xa3\x01\x08\x01\xa4\x01", id="a group at a reserved number"),
    ],
)
def test_what_fits_is_taken(payload: bytes) -> None:
    assert schema_of(ORDER, LINE).check([payload]) is None


@pytest.mark.parametrize(
    ("payload", "path", "problem"),
    [
        (b"\x09" + bytes(8), "$.id", "it must be int64, and is written as another type"),
        (b"\x78\x01", "$", "it has field number 15, which message M does not have"),
        (span(2, b"\xff"), "$.city", "it must be a string, and is no UTF-8"),
        (b"\x12\x05a", "$.city", "the payload ends within it"),
        (span(4, b"") + span(4, b"\x08\x01"), "$.lines[1].price", "it must be double, and is written as another type"),
        (span(5, span(5, span(2, b"\xff"))), "$.next.next.city", "it must be a string, and is no UTF-8"),
        (span(5, b"\x78\x01"), "$.next", "it has field number 15, which message M does not have"),
        (b'{"id": "secret"}', "$", "field number 15"),
        (b"\x00\x01", "$", "its bytes are no message M"),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "$.id", "a number in it does not end"),
        (span(3, b"\x80"), "$.sizes[0]", "a number in it does not end"),
        (b"\x0c", "$", "its bytes are no message M"),
    ],
)
def test_of_what_does_not_fit_the_place_is_told(payload: bytes, path: str, problem: str) -> None:
    misfit = schema_of(ORDER, LINE).check([b"", payload])
    assert misfit is not None
    assert (misfit.index, misfit.path) == (1, path)
    assert problem in misfit.problem
    assert "secret" not in misfit.problem


def test_what_is_required_must_be_there() -> None:
    inner = message("Inner", field("a", 1, "int32", "required"))
    schema = schema_of(message("M", field("inner", 1, "message", of=".Inner")), inner, syntax="proto2")
    assert schema.check([span(1, b"\x08\x01")]) is None
    misfit = schema.check([span(1, b"")])
    assert misfit is not None
    assert (misfit.path, misfit.problem) == ("$.inner.a", "it is required, and missing")


def test_a_value_that_a_closed_enum_does_not_have_does_not_fit_and_one_of_an_open_enum_does() -> None:
    def check(syntax: str, payload: bytes) -> Any:
        shape = message("M", field("e", 1, "enum", of=".E"), field("s", 2, "string"))
        return schema_of(shape, enums=[enum("E", 0, 1, -2)], syntax=syntax).check([payload])

    negative = b"\x08" + varint(-2)
    assert [check("proto2", each) for each in (b"\x08\x01", negative)] == [None, None]
    misfit = check("proto2", b"\x08\x07")
    assert (misfit.path, misfit.problem) == ("$.e", "it must be one of the 3 values of its enum")
    assert check("proto3", b"\x08\x07") is None
    assert check("proto2", span(2, b"\xff")) is None  # Its strings may be any bytes.


def test_messages_within_messages_go_so_deep_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        payload = b""
        for _ in range(depth):
            payload = span(5, payload)
        return payload

    schema = schema_of(ORDER, LINE)
    assert schema.check([nested(MESSAGES_NESTED_MAX - 1)]) is None
    assert schema.check([nested(MESSAGES_NESTED_MAX + 1)]) is not None
    assert schema.check([nested(10_000)]) is not None


@given(st.binary(max_size=40))
@settings(max_examples=300, deadline=None)
def test_whatever_bytes_come_there_is_a_verdict_with_a_path(payload: bytes) -> None:
    misfit = schema_of(ORDER, LINE).check([payload])
    assert misfit is None or misfit.path.startswith("$")


def test_the_message_is_the_only_one_or_the_one_that_is_named() -> None:
    assert schema_of(ORDER.__class__(name="Only"), of=None).message == "Only"
    assert schema_of(ORDER, LINE, of="Line").message == "Line"
    for name in (None, "Nowhere"):
        with pytest.raises(InvalidSchema, match="M, Line"):
            schema_of(ORDER, LINE, of=name)
    with pytest.raises(InvalidSchema, match="none"):
        schema_of(of=None)


def test_what_it_was_compiled_to_has_every_type_that_it_speaks_of() -> None:
    with pytest.raises(InvalidSchema, match=r"M\.lines is of a type that it does not have|cannot be read"):
        schema_of(ORDER, enums=[enum("Line", 0)])


def test_what_it_was_compiled_to_must_be_that_and_not_too_large() -> None:
    with pytest.raises(InvalidSchema, match="cannot be read"):
        ProtobufSchema(b"hello", None)
    with pytest.raises(InvalidSchema, match=f"{COMPILED_BYTES_MAX:,}"):
        ProtobufSchema(bytes(COMPILED_BYTES_MAX + 1), None)
    with pytest.raises(InvalidSchema, match="editions"):
        schema_of(ORDER, LINE, syntax="editions")


# --- which may follow which -------------------------------------------------------------------------------------------


def one(*fields: Any, **rest: Any) -> ProtobufSchema:
    return schema_of(message("M", *fields, **rest))


A, B = field("a", 1, "int32"), field("b", 2, "string")


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        pytest.param(one(A), one(A, B), None, None, id="a field more"),
        pytest.param(one(A, B), one(A, reserved=[(2, 3)]), None, None, id="a field less, its number reserved"),
        pytest.param(one(A, B), one(A), "$.b: it is gone, and its number is free", None, id="a field less"),
        pytest.param(one(A), one(field("other", 1, "int32")), None, None, id="another name"),
        pytest.param(
            one(A), one(field("a", 1, "int64")), None, "$.a: it is int32, and was written as int64", id="a wider number"
        ),
        pytest.param(
            one(A), one(field("a", 1, "sint32")), "$.a: it is sint32", "$.a: it is int32", id="another encoding"
        ),
        pytest.param(one(B), one(field("b", 2, "bytes")), None, "$.b: it is string", id="bytes of a text"),
        pytest.param(one(A), one(field("a", 1, "int32", "repeated")), None, "$.a: it is read once", id="several times"),
        pytest.param(
            one(A, reserved=[(2, 3)]), one(A, B), "$.b: its number 2 was reserved", None, id="a reserved number"
        ),
        pytest.param(
            one(A, reserved=[(5, 9)]),
            one(A, reserved=[(5, 7)]),
            "from 7 to 8 are no longer reserved",
            None,
            id="given up",
        ),
        pytest.param(one(A, reserved=[(5, 9)]), one(A, reserved=[(4, 7), (7, 20)]), None, None, id="reserved in parts"),
        pytest.param(
            one(A, B),
            one(field("a", 1, "int32", oneof=0), field("b", 2, "string", oneof=0), oneofs=1),
            "$: a, b are alternatives (`oneof`), and may be written together",
            None,
            id="fields that become alternatives",
        ),
        pytest.param(
            one(A), one(field("a", 1, "int32", oneof=0), oneofs=1), None, None, id="one field in a oneof of its own"
        ),
        pytest.param(
            schema_of(message("M", A), syntax="proto2"),
            schema_of(message("M", A, field("b", 2, "string", "required")), syntax="proto2"),
            "$.b: it is required, and not in what is to be read",
            None,
            id="a required field more",
        ),
        pytest.param(
            schema_of(message("M", A), syntax="proto2"),
            schema_of(message("M", field("a", 1, "int32", "required")), syntax="proto2"),
            "$.a: it is required, and may be missing",
            None,
            id="required from now on",
        ),
        pytest.param(
            schema_of(message("M", field("e", 1, "enum", of=".E")), enums=[enum("E", 0, 1)], syntax="proto2"),
            schema_of(message("M", field("e", 1, "enum", of=".E")), enums=[enum("E", 0)], syntax="proto2"),
            "$.e: its enum does not have 1",
            None,
            id="a value of a closed enum less",
        ),
        pytest.param(
            schema_of(message("M", field("e", 1, "enum", of=".E")), enums=[enum("E", 0, 1)]),
            schema_of(message("M", field("e", 1, "enum", of=".E")), enums=[enum("E", 0)]),
            None,
            None,
            id="a value of an open enum less",
        ),
        pytest.param(
            schema_of(message("M", field("i", 1, "message", of=".I")), message("I", A)),
            schema_of(message("M", field("i", 1, "message", of=".J")), message("J", field("a", 1, "string"))),
            "$.i.a: it is string, and was written as int32",
            "$.i.a: it is int32, and was written as string",
            id="a message within",
        ),
        pytest.param(schema_of(ORDER, LINE), schema_of(ORDER, LINE), None, None, id="a recursive message"),
        pytest.param(
            schema_of(message("M", A), syntax="proto2"),
            schema_of(message("M", A)),
            "it is proto3, and proto2",
            "it is proto2, and proto3",
            id="another syntax",
        ),
    ],
)
def test_what_may_follow_what(old: Any, new: Any, backward: str | None, forward: str | None) -> None:
    for mode, problem in (("backward", backward), ("forward", forward)):
        told = incompatibilities(mode, old, new)  # type: ignore[arg-type]
        assert told == [] if problem is None else any(problem in each for each in told), told


SCALARS = ["int32", "int64", "uint32", "sint32", "bool", "string", "bytes", "double", "fixed32"]


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[tuple[int, str, str]], list[tuple[int, int]]]:
    """Fields by number, type and label, and ranges that are reserved."""
    numbers = draw(st.lists(st.integers(1, 6), unique=True, max_size=4))
    fields = [
        (number, draw(st.sampled_from([*SCALARS, "message"])), draw(st.sampled_from(["optional", "repeated"])))
        for number in numbers
    ]
    free = [number for number in range(1, 8) if number not in numbers]
    reserved = [(number, number + 1) for number in draw(st.lists(st.sampled_from(free), unique=True, max_size=3))]
    return fields, sorted(reserved)


def built(shape: tuple[list[tuple[int, str, str]], list[tuple[int, int]]]) -> ProtobufSchema:
    fields, reserved = shape
    made = [
        field(f"f{number}", number, type, label, **({"of": ".M"} if type == "message" else {}))
        for number, type, label in fields
    ]
    return schema_of(message("M", *made, reserved=reserved))


@st.composite
def wire(draw: st.DrawFn, depth: int = 0) -> bytes:
    """Bytes as Protobuf writes them, of whatever fields."""
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        number, kind = draw(st.integers(1, 7)), draw(st.sampled_from([0, 1, 2, 5]))
        if kind == 2:
            inner = draw(wire(depth + 1)) if depth < 2 and draw(st.booleans()) else draw(st.binary(max_size=4))
            parts.append(span(number, inner))
        else:
            value = {0: varint(draw(st.integers(-3, 300))), 1: bytes(8), 5: bytes(4)}[kind]
            parts.append(varint(number << 3 | kind) + value)
    return b"".join(parts)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_payloads_that_fit_the_schema_before_fit_one_that_is_backward_compatible(data: st.DataObject) -> None:
    before = data.draw(shapes())
    after = data.draw(
        st.one_of(shapes(), st.just((before[0][1:], [*before[1], *((n, n + 1) for n, _, _ in before[0][:1])])))
    )
    old, new = built(before), built((after[0], sorted(after[1])))
    assume(not incompatibilities("backward", old, new))
    for payload in data.draw(st.lists(wire(), min_size=10, max_size=10)):
        if old.check([payload]) is None:
            assert new.check([payload]) is None


def test_every_type_of_protobuf_has_a_name_here() -> None:
    from sealane.schemas.protobuf.shapes import TYPE_NAMES

    assert {number: name for name, number in TYPES.items()} == TYPE_NAMES
