from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidArgument, InvalidMessage
from sealane.message import Stamp, generate_ids, parse_id
from tests.unit.message.strategies import STAMP, stamps


def test_a_thousand_generated_ids_compress_to_under_four_bytes_each() -> None:
    ids = generate_ids(1000, STAMP)
    assert len(pa.compress(ids.buffers()[1], codec="zstd", asbytes=True)) < 4 * 1000


@given(stamps, st.integers(min_value=1, max_value=700))
def test_generated_ids_are_unique_version_7_uuids_in_order_that_carry_their_time(stamp: Stamp, count: int) -> None:
    ids = generate_ids(count, stamp).to_pylist()
    assert len(set(ids)) == count
    assert sorted(ids) == ids
    for one in (ids[0], ids[-1]):
        as_uuid = uuid.UUID(bytes=one)
        assert (as_uuid.version, as_uuid.variant) == (7, uuid.RFC_4122)
        assert as_uuid.int >> 80 == stamp.created_us // 1000


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16), st.integers(0, 2**47))
def test_ids_of_a_later_microsecond_sort_after_those_of_an_earlier_one(first: bytes, second: bytes, at_us: int) -> None:
    earlier = generate_ids(300, Stamp(at_us, first)).to_pylist()
    later = generate_ids(300, Stamp(at_us + 1, second)).to_pylist()
    assert earlier[-1] < later[0]


def test_counting_up_from_the_highest_start_stays_a_uuid() -> None:
    ids = generate_ids(100_000, Stamp(0, b"\xff" * 16)).to_pylist()
    assert sorted(ids) == ids
    assert uuid.UUID(bytes=ids[-1]).variant == uuid.RFC_4122


def test_two_batches_of_one_microsecond_share_no_id() -> None:
    one = generate_ids(1000, Stamp(5, b"\x01" * 16)).to_pylist()
    other = generate_ids(1000, Stamp(5, b"\x02" * 16)).to_pylist()
    assert not set(one) & set(other)


@pytest.mark.parametrize("stamp", [Stamp(-1, bytes(16)), Stamp(253_402_300_800_000_000, bytes(16)), Stamp(0, bytes(8))])
def test_a_stamp_that_cannot_be_is_refused(stamp: Stamp) -> None:
    with pytest.raises(InvalidArgument, match="stamp"):
        generate_ids(1, stamp)


def test_an_id_is_read_from_a_uuid_its_text_and_its_bytes() -> None:
    value = uuid.UUID("0199c1a0-4f00-7abc-8def-0123456789ab")
    assert parse_id(value) == parse_id(str(value)) == parse_id(value.bytes) == value.bytes


@pytest.mark.parametrize("value", ["not a uuid", b"short", b"x" * 17, 7, None, bytearray(16)])
def test_anything_else_is_not_an_id(value: object) -> None:
    with pytest.raises(InvalidMessage) as caught:
        parse_id(value)  # type: ignore[arg-type]
    assert caught.value.field == "id"
