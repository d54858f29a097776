"""Bytes from someone else: whatever they are, they decode to a batch that keeps every rule, or are refused by name."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from sealane.errors import FormatTooNew, InvalidBatch, InvalidMessage, LimitExceeded, SealaneError
from sealane.message import SCHEMA, BatchMeta, Limits, Row, decode, encode, from_payloads, from_rows
from sealane.message.ipc_message import inspect
from tests.unit.message.strategies import LIMITS, STAMP

FULL = from_rows(
    [
        Row(b"one", b"k1", {"a": "1"}, 1, 10, 20),
        Row(b"two", b"k2", {"a": "2", "b": "3"}, 2, 30, 40),
        Row(b"three", b"k3", {"c": "4"}, 3, 50, 60),
    ],
    STAMP,
    limits=LIMITS,
)
PLAIN = from_payloads([b"one", b"two", b"three"], STAMP, limits=LIMITS)


def forged(*, absent: int = 0, meta: bytes = b"", **columns: pa.Array) -> bytes:
    """An encoding with these columns in place of sound ones; Arrow writes what it is given."""
    arrays = [columns.get(name, FULL.records.column(name)) for name in SCHEMA.names]
    arrays = [array for place, array in enumerate(arrays) if not absent >> place & 1]
    body = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))]).serialize().to_pybytes()
    return framed(body, absent=absent, meta=meta)


def framed(body: bytes, *, absent: int = 0, meta: bytes = b"", version: int = 1, flags: int = 0) -> bytes:
    return struct.pack("<BBHI", version, flags, absent, len(meta)) + meta + bytes(-len(meta) % 8) + body


def raw(kind: pa.DataType, rows: int, *buffers: Any, **options: Any) -> pa.Array:
    made = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(kind, rows, made, -1, **options)


def int32(*values: int) -> bytes:
    return np.array(values, dtype=np.int32).tobytes()


def headers(offsets: bytes, names: pa.Array, values: pa.Array) -> pa.Array:
    entries = pa.StructArray.from_arrays(
        [names, values], fields=[pa.field("key", pa.utf8(), nullable=False), pa.field("value", pa.utf8())]
    )
    return pa.Array.from_buffers(SCHEMA.field("headers").type, 3, [None, pa.py_buffer(offsets)], 0, children=[entries])


TEXT = pa.array(["a", "b", "c"])

PAYLOADS = raw(pa.binary(), 3, None, int32(0, 3, 6, 11), b"onetwothree")
KEYS = raw(pa.binary(), 3, None, int32(0, 5, 6, 9), b"keykeykey")
HEADERS = headers(int32(0, 2, 2, 3), TEXT, TEXT)

HOSTILE_OFFSETS = {
    "payload beyond its data": ("payload", PAYLOADS, (0, 3, 6, 11), (0, 3, 6, 4000)),
    "payload decreasing": ("payload", PAYLOADS, (0, 3, 6, 11), (0, 6, 3, 11)),
    "payload jumping out and back": ("payload", PAYLOADS, (0, 3, 6, 11), (0, 3_000_000, 6, 11)),
    "payload negative": ("payload", PAYLOADS, (0, 3, 6, 11), (-8, 3, 6, 11)),
    "payload negative inside": ("payload", PAYLOADS, (0, 3, 6, 11), (0, -3, 6, 11)),
    "key beyond its data": ("key", KEYS, (0, 5, 6, 9), (0, 5, 6, 2**31 - 1)),
    "key ending negative": ("key", KEYS, (0, 5, 6, 9), (0, 5, 6, -1)),
    "headers beyond the entries": ("headers", HEADERS, (0, 2, 2, 3), (0, 2, 2, 900)),
    "headers decreasing": ("headers", HEADERS, (0, 2, 2, 3), (0, 2, 1, 3)),
    "headers negative": ("headers", HEADERS, (0, 2, 2, 3), (-1, 2, 2, 3)),
}


@pytest.mark.parametrize("case", HOSTILE_OFFSETS)
def test_an_offset_that_leads_astray_is_refused_with_its_column(case: str) -> None:
    name, column, sound, hostile = HOSTILE_OFFSETS[case]
    encoded = forged(**{name: column})
    decode(encoded, limits=LIMITS)
    assert encoded.count(int32(*sound)) == 1
    with pytest.raises(InvalidBatch) as caught:
        decode(encoded.replace(int32(*sound), int32(*hostile)), limits=LIMITS)
    assert caught.value.column == name


HOSTILE_COLUMNS = {
    "a null id": ("id", pa.array([b"x" * 16, None, b"y" * 16], pa.binary(16))),
    "a null payload": ("payload", pa.array([b"a", None, b"c"], pa.binary())),
    "a null priority": ("priority", pa.array([1, None, 3], pa.int8())),
    "a null creation": ("created", pa.array([1, None, 3], pa.timestamp("us", "UTC"))),
    "header names that are not UTF-8": (
        "headers",
        headers(int32(0, 1, 2, 3), raw(pa.utf8(), 3, None, int32(0, 1, 2, 3), b"\xff\xfe\xfd"), TEXT),
    ),
    "header values that are not UTF-8": (
        "headers",
        headers(int32(0, 1, 2, 3), TEXT, raw(pa.utf8(), 3, None, int32(0, 1, 2, 3), b"ab\xc3")),
    ),
    "a null header value": ("headers", headers(int32(0, 1, 2, 3), TEXT, pa.array(["a", None, "c"]))),
}


@pytest.mark.parametrize("part", [1, 2], ids=["entries", "names"])
@pytest.mark.parametrize("nulls", [1, 3, -1, 2**40])
def test_headers_whose_names_claim_nulls_are_refused_before_arrow_sees_them(part: int, nulls: int) -> None:
    encoded = bytearray(forged())
    shape = inspect(memoryview(encoded)[8:])
    struct.pack_into("<q", encoded, 16 + shape.nodes_at + (SCHEMA.names.index("headers") + part) * 16 + 8, nulls)
    with pytest.raises(InvalidBatch, match="names may not be null") as caught:
        decode(encoded, limits=LIMITS)
    assert caught.value.column == "headers"


@pytest.mark.parametrize("case", HOSTILE_COLUMNS)
def test_a_broken_column_is_refused_by_name(case: str) -> None:
    name, column = HOSTILE_COLUMNS[case]
    with pytest.raises(InvalidBatch) as caught:
        decode(forged(**{name: column}), limits=LIMITS)
    assert caught.value.column == name


@pytest.mark.parametrize(
    ("field", "column", "value"),
    [
        ("priority", pa.array([1, 0, 3], pa.int8()), "0"),
        ("priority", pa.array([1, 11, 3], pa.int8()), "11"),
        ("priority", pa.array([1, -128, 3], pa.int8()), "-128"),
        ("created", raw(SCHEMA.field("created").type, 3, None, np.array([1, -1, 1]).tobytes()), "-1"),
        ("created", raw(SCHEMA.field("created").type, 3, None, np.array([1, 2**62, 1]).tobytes()), str(2**62)),
        ("expires", raw(SCHEMA.field("created").type, 3, None, np.array([1, -(2**63), 1]).tobytes()), str(-(2**63))),
        (
            "deliver_at",
            raw(SCHEMA.field("created").type, 3, None, np.array([1, 253402300800000000, 1]).tobytes()),
            "2534",
        ),
        ("headers", headers(int32(0, 0, 3, 3), pa.array(["a", "b", "a"]), TEXT), "'a' twice"),
    ],
)
def test_a_value_that_no_message_may_have_is_refused_by_field(field: str, column: pa.Array, value: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode(forged(**{field: column}), limits=LIMITS)
    assert caught.value.field == field
    assert value in str(caught.value)


def test_a_value_under_a_null_does_not_count() -> None:
    times = raw(SCHEMA.field("created").type, 3, b"\x05", np.array([1, -1, 1]).tobytes())
    assert decode(forged(expires=times), limits=LIMITS).traits.expires_min_us == 1


def test_a_name_may_come_in_two_messages() -> None:
    sound = headers(int32(0, 1, 3, 3), pa.array(["a", "a", "b"]), TEXT)
    assert decode(forged(headers=sound), limits=LIMITS).records.column("headers")[1].as_py() == [("a", "b"), ("b", "c")]


def test_columns_that_are_all_null_but_present_are_sound() -> None:
    nulls = {
        name: pa.nulls(3, SCHEMA.field(name).type) for name in ("key", "headers", "expires", "deliver_at", "envelope")
    }
    batch = decode(forged(**nulls, priority=pa.array([5, 5, 5], pa.int8())), limits=LIMITS)
    assert batch.traits.plain
    assert decode(encode(batch), limits=LIMITS) == batch


@pytest.mark.parametrize(
    ("limits", "field", "limit", "value"),
    [
        (Limits(payload_bytes_max=4), "payload", 4, 5),
        (Limits(key_bytes_max=1), "key", 1, 2),
        (Limits(headers_max=1), "headers", 1, 2),
        (Limits(header_bytes_max=1), "header", 1, 2),
        (Limits(batch_messages_max=2), "batch", 2, 3),
    ],
)
def test_limits_hold_for_foreign_bytes_and_are_refused_with_their_value(
    limits: Limits, field: str, limit: int, value: int
) -> None:
    with pytest.raises(LimitExceeded) as caught:
        decode(encode(FULL), limits=limits)
    assert (caught.value.field, caught.value.limit, caught.value.value) == (field, limit, value)


def test_bytes_far_beyond_the_batch_limit_are_refused_unread() -> None:
    with pytest.raises(LimitExceeded) as caught:
        decode(bytes(20_000), limits=Limits(batch_bytes_max=1000))
    assert caught.value.value == 20_000


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_binary(), pa.binary_view(), pa.bool_(), pa.float64()])
def test_a_column_of_another_type_is_refused(kind: pa.DataType) -> None:
    values = [b"a", b"b", b"c"] if "binary" in str(kind) else [0, 1, 1]
    with pytest.raises(SealaneError):
        decode(forged(payload=pa.array(values).cast(kind)), limits=LIMITS)


def test_a_column_too_many_or_too_few_is_refused() -> None:
    columns = FULL.records.columns
    for arrays in (columns[:-1], [*columns, columns[-1]], columns[:1]):
        body = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))]).serialize().to_pybytes()
        with pytest.raises(InvalidBatch, match=r"claims 3 messages in \d+ fields"):
            decode(framed(body), limits=LIMITS)


def test_columns_that_every_message_has_cannot_be_absent() -> None:
    for place in (0, 2, 5, 9, 15):
        with pytest.raises(InvalidBatch, match="missing"):
            decode(framed(b"", absent=1 << place), limits=LIMITS)


@pytest.mark.parametrize("rows", [4, 99_999, 100_000, 100_001, 2**31, 2**40, 2**63 - 1, -1, -(2**63), 0])
def test_a_row_count_that_the_buffers_cannot_hold_is_refused(rows: int) -> None:
    encoded = encode(PLAIN)
    claimed = encoded.replace(struct.pack("<q", 3), struct.pack("<q", rows))
    assert claimed != encoded
    with pytest.raises((InvalidBatch, LimitExceeded)):
        decode(claimed, limits=LIMITS)


def test_many_rows_of_nothing_are_refused() -> None:
    # Every field node agrees on the count, and no buffer has a byte.
    kinds = [SCHEMA.field(name).type for name in ("id", "payload", "created")]
    empty = [raw(kind, 0, *([None] + [b""] * (2 if kind == pa.binary() else 1))) for kind in kinds]
    body = pa.RecordBatch.from_arrays(empty, names=["a", "b", "c"]).serialize().to_pybytes()
    absent = decode(encode(PLAIN), limits=LIMITS).absent
    with pytest.raises(InvalidBatch, match="claims 0 messages"):
        decode(framed(body, absent=absent), limits=LIMITS)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_refused_before_anything_is_unpacked(codec: str) -> None:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, FULL.records.schema, options=options) as writer:
        writer.write_batch(FULL.records)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    body = reader.read_next_message().serialize().to_pybytes()
    with pytest.raises(InvalidBatch, match="compressed"):
        decode(framed(body), limits=LIMITS)


def test_our_own_compression_is_refused_from_others() -> None:
    with pytest.raises(InvalidBatch, match="compressed"):
        decode(encode(FULL, compression="zstd"), limits=LIMITS)
    assert decode(encode(FULL, compression="zstd"), limits=None) == FULL


def test_an_older_arrow_metadata_version_is_refused_since_it_can_hide_compression() -> None:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(sink, FULL.records.schema, options=options) as writer:
        writer.write_batch(FULL.records)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    with pytest.raises(InvalidBatch, match="version 5"):
        decode(framed(reader.read_next_message().serialize().to_pybytes()), limits=LIMITS)


def test_metadata_inside_the_arrow_message_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, FULL.records.schema) as writer:
        writer.write_batch(FULL.records, custom_metadata={"a": "b"})
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    with pytest.raises(InvalidBatch, match="metadata of its own"):
        decode(framed(reader.read_next_message().serialize().to_pybytes()), limits=LIMITS)


def test_a_schema_or_a_dictionary_in_place_of_a_batch_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="a schema"):
        decode(framed(SCHEMA.serialize().to_pybytes()), limits=LIMITS)
    sink = pa.BufferOutputStream()
    words = pa.RecordBatch.from_arrays([pa.array(["a", "b"]).dictionary_encode()], names=["word"])
    with pa.ipc.new_stream(sink, words.schema) as writer:
        writer.write_batch(words)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    with pytest.raises(InvalidBatch, match="a dictionary batch"):
        decode(framed(reader.read_next_message().serialize().to_pybytes()), limits=LIMITS)


@pytest.mark.parametrize("batch", [PLAIN, FULL], ids=["plain", "full"])
def test_every_truncation_and_every_addition_is_refused(batch: Any) -> None:
    encoded = encode(batch)
    for stop in range(len(encoded)):
        with pytest.raises(InvalidBatch):
            decode(encoded[:stop], limits=LIMITS)
    for more in (b"\0", bytes(8), encoded):
        with pytest.raises(InvalidBatch):
            decode(encoded + more, limits=LIMITS)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(InvalidBatch, match=f"version {version}"):
        decode(framed(b"", version=version), limits=LIMITS)


def test_own_bytes_of_a_newer_version_ask_for_an_upgrade() -> None:
    with pytest.raises(FormatTooNew):
        decode(framed(b"", version=2), limits=None)


def test_own_bytes_that_are_not_a_batch_are_refused_too() -> None:
    for body in (b"", b"garbage of some length", bytes(64)):
        for flags in (0, 1):
            with pytest.raises(InvalidBatch):
                decode(framed(body, flags=flags), limits=None)


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(InvalidBatch, match="flags 0x82"):
        decode(framed(b"", flags=0x82), limits=LIMITS)


@pytest.mark.parametrize(
    "meta",
    [
        b"\xc1",
        b"\x91\x05",
        msgspec.msgpack.encode([False, "text"]),
        msgspec.msgpack.encode({"given_ids": True}),
        msgspec.msgpack.encode([False, b"p", -1]),
        msgspec.msgpack.encode([False, b"p", 2**63]),
        msgspec.msgpack.encode([False, None, None, -5]),
        b"\x91" * 3000 + b"\xc0",
        b"\x95\xc2\xc0\xc0\xc0\xa1\xff",
        msgspec.msgpack.encode([False, None, None, None, "x" * 5000]),
    ],
)
def test_metadata_that_makes_no_sense_is_refused(meta: bytes) -> None:
    with pytest.raises(InvalidBatch, match="metadata"):
        decode(forged(meta=meta), limits=LIMITS)


def test_metadata_travels_with_the_batch() -> None:
    meta = BatchMeta(given_ids=True, producer=b"p" * 16, sequence=7, schema_id=3, trace="00-ab-cd-01", only="billing")
    batch = FULL.with_meta(meta)
    for limits in (LIMITS, None):
        assert decode(encode(batch), limits=limits) == batch


def test_bytes_at_an_odd_address_are_read_as_well() -> None:
    encoded = encode(FULL)
    shifted = memoryview(b"\0" + encoded)[1:]
    assert decode(shifted, limits=LIMITS) == FULL
    assert decode(pa.py_buffer(encoded), limits=LIMITS) == FULL
    assert decode(bytearray(encoded), limits=LIMITS) == FULL
