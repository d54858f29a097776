"""Any schema and any payload, against fastavro."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealane.spark.values import values_of
from tests.unit.spark.values.avro_schemas import fastavro_reads, records, written
from tests.unit.spark.values.reading import plain, read

patient = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def texts_of_uuids(value: Any) -> Any:
    """Identifiers are texts in a table."""
    if isinstance(value, dict):
        return {key: texts_of_uuids(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts_of_uuids(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


@given(st.data())
@patient
def test_what_fastavro_writes_is_read(data: st.DataObject) -> None:
    schema, of_schema = data.draw(records(logical=True))
    rows = data.draw(st.lists(of_schema, max_size=6))
    # More than a few rows are read an item at a time, fewer are walked through: both ways must agree.
    rows = rows * data.draw(st.sampled_from([1, 20]))
    values = values_of("avro", json.dumps(schema))

    found = read(values, [written(schema, row) for row in rows])

    assert found == [plain(texts_of_uuids(row), values.arrow_type) for row in rows]


@given(st.data())
@patient
def test_of_damaged_payloads_none_is_read_that_fastavro_would_read_differently(data: st.DataObject) -> None:
    schema, of_schema = data.draw(records(logical=False))
    values = values_of("avro", json.dumps(schema))
    sound = [written(schema, row) for row in data.draw(st.lists(of_schema, min_size=1, max_size=6))]
    payloads = [data.draw(damaged(payload)) for payload in sound] * data.draw(st.sampled_from([1, 20]))

    found = read(values, payloads)

    for payload, value in zip(payloads, found, strict=True):
        if value is not None:
            same, is_whole = fastavro_reads(schema, payload)
            assert is_whole
            assert value == plain(same, values.arrow_type)


@given(st.data())
@patient
def test_a_payload_becomes_the_same_whatever_is_beside_it(data: st.DataObject) -> None:
    schema, of_schema = data.draw(records(logical=True))
    values = values_of("avro", json.dumps(schema))
    sound = [written(schema, row) for row in data.draw(st.lists(of_schema, min_size=1, max_size=5))]
    payloads = sound + [data.draw(damaged(payload)) for payload in sound] + data.draw(st.lists(st.binary(max_size=30)))
    payloads = data.draw(st.permutations(payloads)) * data.draw(st.sampled_from([1, 10]))

    assert read_raw(values, payloads) == [read_raw(values, [payload])[0] for payload in payloads]


def read_raw(values: Any, payloads: list[bytes]) -> list[str]:
    """Values as text: a time may be one that Python has no number for."""
    value, corrupt = values.read(pa.array(payloads, pa.binary()))
    value.validate(full=True)
    batch = pa.chunked_array([value.slice(row, 1) for row in range(len(value))])
    return [f"{chunk} {left}" for chunk, left in zip(batch.chunks, corrupt.to_pylist(), strict=True)]


@st.composite
def damaged(draw: st.DrawFn, payload: bytes) -> bytes:
    """A payload that is cut, longer, or has other bytes at a place."""
    place = draw(st.integers(0, len(payload)))
    inserted = draw(
        st.binary(max_size=3) | st.sampled_from([b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 12])
    )
    return payload[:place] + inserted + payload[place + draw(st.integers(0, 3)) :]
