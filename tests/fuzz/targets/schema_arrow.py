"""Arrow schemas, and payloads that are Arrow IPC streams or record batches."""

from __future__ import annotations

import base64

import pyarrow as pa

from sealane.schemas import Definition
from tests.fuzz.mutation import mutate
from tests.fuzz.schemas_and_payloads import checked, given, spoiled
from tests.fuzz.target import Target

_FLAT = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
_NESTED = pa.schema(
    [
        pa.field("lines", pa.list_(pa.struct([("price", pa.float64()), ("note", pa.large_string())]))),
        pa.field("tags", pa.map_(pa.string(), pa.int32())),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
    ]
)
_MORE = _FLAT.append(pa.field("at", pa.timestamp("us", "UTC")))


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _definition(data: bytes) -> Definition:
    return Definition("arrow", base64.b64encode(data).decode())


_SOME = pa.RecordBatch.from_pylist([{"id": 1, "city": "Oslo"}, {"id": 2, "city": None}], schema=_FLAT)
_NO_KIND = _NESTED.remove(2)
_LINES = pa.RecordBatch.from_pylist(
    [{"lines": [{"price": 1.0, "note": "x"}], "tags": [("a", 1)]}, {"lines": None, "tags": []}], schema=_NO_KIND
)

TARGET = Target(
    "schema_arrow",
    (
        given(bytes(_FLAT.serialize()), bytes(_MORE.serialize()), [_stream(_SOME), bytes(_SOME.serialize())]),
        given(bytes(_NO_KIND.serialize()), bytes(_FLAT.serialize()), [_stream(_LINES)]),
        given(
            bytes(_FLAT.serialize()),
            bytes(_NESTED.serialize()),
            [_stream(_SOME.append_column("more", pa.array([1, 2])))],
        ),
    ),
    checked(_definition),
    spoiled(mutate),
)
