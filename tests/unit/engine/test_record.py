"""Records: what is written is what is read, and nothing else passes for it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from sealane.engine import PartitionKey
from sealane.engine.local import record
from sealane.engine.local.record import JOURNAL, MANY, MESSAGES, SEALED, Entry, Head

NONCE = b"12345678"
ORDERS = PartitionKey("default", "orders", 1, 0)

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)
partitions = st.builds(PartitionKey, names, names, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))


@st.composite
def bodies(draw) -> tuple[Entry, bytes]:
    body = draw(st.binary(max_size=100))
    made = record.describe(
        draw(st.sampled_from([MESSAGES, JOURNAL])),
        draw(partitions),
        draw(st.integers(0, 2**63)),
        draw(st.integers(0, 2**63)),
        draw(st.integers(1, 2**32 - 1)),
        body,
        flags=draw(st.sampled_from([0, SEALED, MANY, SEALED | MANY])),
    )
    return made, body


def made(*contents: bytes, sequence: int = 7, version: int = record.FORMAT) -> tuple[bytes, Head]:
    entries = [
        (record.describe(MESSAGES, ORDERS, 1, 10 * place, 10, content), content)
        for place, content in enumerate(contents)
    ]
    buffers, head = record.encode_record(sequence, NONCE, 1_700_000_000_000_000, entries, version=version)
    return b"".join(buffers), head


@given(st.lists(bodies(), max_size=5), st.integers(0, 2**63), st.integers(0, 2**62))
def test_a_record_is_read_as_it_was_written(entries, sequence, time_us) -> None:
    buffers, head = record.encode_record(sequence, NONCE, time_us, entries)
    data = b"".join(buffers)
    assert len(data) == head.record_bytes
    assert len(data) % 8 == 0
    assert record.read_head(data, 0) == head
    assert record.has_tail(data, 0, head)
    assert (head.sequence, head.nonce, head.time_us) == (sequence, NONCE, time_us)
    for (entry, body), (read, position) in zip(entries, head.bodies(), strict=True):
        assert read == entry
        assert position % 8 == 0
        assert data[position : position + entry.body_bytes] == body
        assert record.checksum(body) == entry.body_checksum


@pytest.mark.parametrize("length", [0, 1, (32 << 10) - 1, 32 << 10, (32 << 10) + 1, 1 << 20, (1 << 20) + 7])
def test_a_checksum_is_that_of_the_whole_body_however_long(length: int) -> None:
    body = Random(length).randbytes(length)
    assert record.checksum(body) == record.checksum(memoryview(body)) == xxh3_64_intdigest(body)


def test_a_record_may_be_empty() -> None:
    data, head = made()
    assert head.entries == ()
    assert record.read_head(data, 0) == head


def test_the_tail_tells_what_the_head_says_and_where_the_record_begins() -> None:
    data, head = made(b"one", b"two")
    shifted = bytes(16) + data
    at = shifted.find(record.tail_mark(record.FORMAT, NONCE))
    assert record.read_head(shifted, at, tail=True) == head
    assert record.record_start(at, head) == 16


@given(st.data())
def test_any_flipped_bit_of_a_head_is_noticed(data) -> None:
    content, head = made(b"one", b"two")
    position = data.draw(st.integers(0, head.head_bytes - 1))
    damaged = bytearray(content)
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    assert record.read_head(bytes(damaged), 0) is None
    assert record.has_tail(bytes(damaged), 0, head)


@given(st.integers(0, 400))
def test_a_head_that_is_cut_short_is_no_head(length) -> None:
    content, head = made(b"one", b"two")
    cut = content[:length]
    assert (record.read_head(cut, 0) == head) == (length >= head.head_bytes)


@given(st.binary(max_size=300), st.integers(-10, 310), st.booleans())
def test_garbage_is_never_a_head(garbage, position, tail) -> None:
    assert record.read_head(garbage, position, tail=tail) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(16, 8, id="another length than its bodies have"),
        pytest.param(48 + 2, 0xFF, id="names longer than it"),
        pytest.param(48 + 56, 0xFF, id="a name that is no UTF-8"),
    ],
)
def test_a_head_that_says_what_cannot_be_is_none_even_with_its_checksum(place, value) -> None:
    content, head = made(b"one", b"two")
    changed = bytearray(content)
    changed[place] = value
    assert changed != content
    changed[head.head_bytes - 8 : head.head_bytes] = record.checksum(bytes(changed[4 : head.head_bytes - 8])).to_bytes(
        8, "little"
    )
    assert record.read_head(bytes(changed), 0) is None


def test_either_copy_of_the_head_restores_the_other() -> None:
    content, head = made(b"one", b"two")
    for from_tail in (False, True):
        block, tail = record.head_copies(content, 0, head, from_tail=from_tail)
        assert content.startswith(block)
        assert content.endswith(tail)


def test_version_1_kept_seconds_and_is_read_as_their_last_instant() -> None:
    data, _ = made(b"one", version=1)
    head = record.read_head(data, 0)
    assert head is not None
    assert head.version == 1
    assert head.time_us == 1_700_000_000_999_999


def test_sealed_bodies_are_bound_to_everything_that_names_their_place() -> None:
    place = record.associated(ORDERS, MESSAGES, 10, 5)
    others = [
        record.associated(ORDERS._replace(domain="default2"), MESSAGES, 10, 5),
        record.associated(ORDERS._replace(topic="orders2"), MESSAGES, 10, 5),
        record.associated(ORDERS._replace(domain="defaulto", topic="rders"), MESSAGES, 10, 5),
        record.associated(ORDERS._replace(incarnation=2), MESSAGES, 10, 5),
        record.associated(ORDERS._replace(partition=1), MESSAGES, 10, 5),
        record.associated(ORDERS, JOURNAL, 10, 5),
        record.associated(ORDERS, MESSAGES, 11, 5),
        record.associated(ORDERS, MESSAGES, 10, 6),
    ]
    assert len({place, *others}) == 9


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20))
def test_several_items_in_a_body_come_apart_again(items) -> None:
    body = record.pack(items)
    unpacked = record.unpack(body, MANY)
    assert [bytes(item) for item in unpacked] == items
    assert [bytes(item) for item in record.unpack(body, 0)] == [body]


def test_a_frame_that_does_not_fit_its_body_is_refused() -> None:
    with pytest.raises(ValueError, match="frames items"):
        record.unpack(record.pack([b"one", b"two"])[:-8], MANY)
