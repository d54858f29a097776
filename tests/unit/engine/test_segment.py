"""Scanning a segment: every sound record is found, whatever is damaged around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine import PartitionKey
from sealane.engine.local import record
from sealane.engine.local.record import MESSAGES
from sealane.engine.local.segment import (
    HEADER_BYTES,
    Gap,
    SegmentHeader,
    first_sequence_of,
    read_header,
    scan,
    segment_name,
)
from sealane.errors import FormatTooNew

NONCE = b"12345678"
ORDERS = PartitionKey("default", "orders", 1, 0)
NAME = segment_name(1)
HEADER = SegmentHeader(record.FORMAT, NONCE, 1, 99)


def one_record(sequence: int, *contents: bytes, nonce: bytes = NONCE) -> bytes:
    entries = [(record.describe(MESSAGES, ORDERS, 1, sequence, 1, content), content) for content in contents]
    return b"".join(record.encode_record(sequence, nonce, 99, entries)[0])


def segment(*records: bytes) -> bytearray:
    return bytearray(b"".join([HEADER.encode(), *records]) + bytes(512))


def sequences(data: bytearray) -> list[int]:
    return [found.head.sequence for found in scan(bytes(data), NAME).records]


def test_a_name_tells_the_first_sequence() -> None:
    assert first_sequence_of(segment_name(42)) == 42
    assert first_sequence_of("wal/next.spare") is None
    assert first_sequence_of(segment_name(42) + ".idx") is None


def test_a_header_is_read_as_it_was_written() -> None:
    assert len(HEADER.encode()) == HEADER_BYTES
    assert read_header(HEADER.encode(), NAME) == HEADER


@given(st.integers(0, 8 * HEADER_BYTES - 1))
def test_any_flipped_bit_of_a_header_is_noticed(bit) -> None:
    damaged = bytearray(HEADER.encode())
    damaged[bit // 8] ^= 1 << bit % 8
    assert read_header(bytes(damaged), NAME) is None


def test_a_newer_format_is_refused_by_name() -> None:
    newer = HEADER._replace(version=record.FORMAT + 1)
    with pytest.raises(FormatTooNew, match=f"{NAME} has format {record.FORMAT + 1}.*upgrade Sealane"):
        read_header(newer.encode(), NAME)


def test_a_sound_segment_is_found_whole() -> None:
    data = segment(*(one_record(number, b"x" * number) for number in range(1, 5)))
    found = scan(bytes(data), NAME)
    assert [each.head.sequence for each in found.records] == [1, 2, 3, 4]
    assert all(each.head_sound and each.tail_sound and not each.damaged for each in found.records)
    assert found.gaps == []
    assert found.end == found.written_end == len(data) - 512


def test_an_empty_segment_holds_nothing() -> None:
    assert scan(bytes(4096), NAME).header is None
    found = scan(bytes(segment()), NAME)
    assert (found.records, found.end) == ([], HEADER_BYTES)


def test_a_damaged_head_is_made_up_for_by_the_tail() -> None:
    data = segment(one_record(1, b"one"), one_record(2, b"two"), one_record(3, b"three"))
    second = HEADER_BYTES + len(one_record(1, b"one"))
    data[second + 20] ^= 1
    found = scan(bytes(data), NAME)
    assert [each.head.sequence for each in found.records] == [1, 2, 3]
    assert [each.head_sound for each in found.records] == [True, False, True]
    assert found.gaps == []


def test_a_damaged_tail_costs_nothing() -> None:
    data = segment(one_record(1, b"one"), one_record(2, b"two"))
    data[HEADER_BYTES + len(one_record(1, b"one")) - 3] ^= 1
    found = scan(bytes(data), NAME)
    assert [(each.head_sound, each.tail_sound) for each in found.records] == [(True, False), (True, True)]


def test_a_damaged_body_costs_that_entry_alone() -> None:
    data = segment(one_record(1, b"one", b"two", b"three"), one_record(2, b"four"))
    at = bytes(data).find(b"two")
    data[at] ^= 1
    first = scan(bytes(data), NAME).records[0]
    assert first.damaged == (1,)
    assert [bytes(data[at : at + entry.body_bytes]) for entry, at in first.bodies()] == [b"one", b"three"]
    assert len(first.lost()) == 1


def test_records_beyond_telling_leave_a_gap_and_what_follows_is_found() -> None:
    first, lost, last = one_record(1, b"one"), one_record(2, b"two"), one_record(3, b"three")
    data = segment(first, lost, last)
    start = HEADER_BYTES + len(first)
    data[start : start + len(lost)] = b"\xff" * len(lost)
    found = scan(bytes(data), NAME)
    assert [each.head.sequence for each in found.records] == [1, 3]
    assert found.gaps == [Gap(start, start + len(lost))]


def test_a_damaged_header_is_made_up_for_by_the_first_record() -> None:
    data = segment(one_record(1, b"one"), one_record(2, b"two"))
    data[:HEADER_BYTES] = b"\xff" * HEADER_BYTES
    found = scan(bytes(data), NAME)
    assert found.header is not None
    assert (found.header.nonce, found.header.first_sequence) == (NONCE, 1)
    assert [each.head.sequence for each in found.records] == [1, 2]


def test_a_record_of_another_file_that_a_message_carries_never_passes_for_one() -> None:
    smuggled = one_record(9, b"smuggled", nonce=b"87654321")
    data = segment(one_record(1, smuggled), one_record(2, b"two"))
    data[HEADER_BYTES] ^= 1
    assert sequences(data) == [1, 2]
    data[HEADER_BYTES + len(one_record(1, smuggled)) - 16] ^= 1
    assert sequences(data) == [2]


def test_an_earlier_record_of_the_same_file_never_passes_for_a_later_one() -> None:
    data = segment(one_record(1, b"one"), one_record(2, b"two"))
    data[-512:] = one_record(1, b"one").ljust(512, b"\0")
    assert sequences(data) == [1, 2]


@given(st.data())
def test_whatever_is_damaged_no_record_is_invented_and_the_untouched_ones_are_found(data) -> None:
    records = [one_record(number, b"a" * (3 * number), b"b" * number) for number in range(1, 8)]
    content = segment(*records)
    starts = [HEADER_BYTES + sum(map(len, records[:place])) for place in range(len(records))]
    touched = set()
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(HEADER_BYTES, len(content) - 513))
        length = data.draw(st.integers(1, 200))
        noise = data.draw(st.binary(min_size=length, max_size=length))
        for place, start in enumerate(starts):
            if at < start + len(records[place]) and at + length > start:
                touched.add(place)
        content[at : at + length] = noise
    found = scan(bytes(content), NAME)
    by_sequence = {each.head.sequence: each for each in found.records}
    for place, start in enumerate(starts):
        if place not in touched:
            assert by_sequence[place + 1].start == start
            assert by_sequence[place + 1].damaged == ()
    for sequence, each in by_sequence.items():
        for entry, position in each.bodies():
            body = bytes(content[position : position + entry.body_bytes])
            assert body in (b"a" * (3 * sequence), b"b" * sequence)
