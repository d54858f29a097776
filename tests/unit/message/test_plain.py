"""Plain messages are made, checked and joined without Arrow, and nobody can tell: all is the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded, SealaneError
from sealane.message import Batch, Limits, Row, Stamp, codec, decode, encode, from_payloads, from_rows
from sealane.message.codec import HEADER_BYTES
from sealane.message.concat import concat
from sealane.message.payloads import FEW, compiled
from sealane.message.plain import HEAD_BYTES, is_sound, is_sound_in_python, plain_layout
from sealane.message.schema import TIME_US_MAX

from .strategies import times_us

LIMITS = Limits()
MADE_US = 1_700_000_000_000_000
payload_lists = st.lists(st.binary(max_size=40), min_size=1, max_size=12)


def batch_of(*payloads: bytes, created_us: int = MADE_US) -> Batch:
    return from_payloads(payloads, Stamp(created_us, bytes(range(16))), limits=LIMITS)


def made_by_arrow(batch: Batch) -> Batch:
    """The same messages with nothing known of them but their columns."""
    return Batch(batch.records, batch.meta, exact=True)


def aligned(data: bytes) -> bytearray:
    return bytearray(data)  # Memory of its own begins at a multiple of 8, the batch's body too.


def quickly(data: bytes, limits: Limits = LIMITS) -> Batch:
    return decode(aligned(data), limits=limits)


def in_the_general_way(data: bytes, limits: Limits = LIMITS) -> Batch:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(codec, "check_plain", lambda data, limits: None)
        return decode(aligned(data), limits=limits)


def outcome(read: Callable[[bytes, Limits], Batch], data: bytes, limits: Limits = LIMITS) -> object:
    try:
        batch = read(data, limits)
    except SealaneError as error:
        return type(error), str(error)
    return len(batch), batch.ids(), batch.payloads(), batch.first_created_us, batch.nbytes, batch.records.to_pydict()


def assert_same(quick: Batch, general: Batch) -> None:
    assert quick.layout is not None, "Arrow has not opened it"
    assert general.layout is None
    assert (len(quick), quick.nbytes, quick.traits) == (len(general), general.nbytes, general.traits)
    assert (quick.absent, quick.first_created_us) == (general.absent, general.first_created_us)
    assert (quick.ids(), quick.payloads()) == (general.ids(), general.payloads())
    assert quick == general


# --- made -------------------------------------------------------------------------------------------------------------


@given(payload_lists, times_us)
def test_plain_messages_are_made_to_the_last_bit_as_arrow_makes_them(payloads: list[bytes], created_us: int):
    quick = batch_of(*payloads, created_us=created_us)
    general = made_by_arrow(quick)
    assert encode(quick) == encode(general)
    assert_same(quick, general)
    assert quick.payloads() == payloads


@given(payload_lists)
def test_rows_that_have_only_a_payload_make_the_same_batch(payloads: list[bytes]):
    stamp = Stamp(MADE_US, bytes(range(16)))
    batch = from_rows([Row(payload) for payload in payloads], stamp, limits=LIMITS)
    assert batch.layout is not None
    assert encode(batch) == encode(batch_of(*payloads))


@pytest.mark.parametrize(("count", "size"), [(FEW, 1), (FEW + 1, 2), (5_000, 2), (2, 1 << 20), (7, 1 << 20)])
def test_many_and_long_ones_are_made_without_arrow_too(count: int, size: int):
    batch = batch_of(*(number.to_bytes(2, "big")[-size:].ljust(size, b"x") for number in range(count)))
    general = made_by_arrow(batch)
    assert encode(batch) == encode(general)
    assert_same(batch, general)
    assert_same(quickly(encode(batch)), in_the_general_way(encode(batch)))


@given(st.lists(st.integers(0, 60), min_size=FEW + 1, max_size=FEW + 40))
def test_payloads_of_any_lengths_are_found_where_arrow_puts_them(lengths: list[int]):
    payloads = [bytes([number % 256]) * length for number, length in enumerate(lengths)]
    batch = batch_of(*payloads)
    assert encode(batch) == encode(made_by_arrow(batch))
    assert batch.payloads() == payloads


@pytest.mark.parametrize("count", [1, 3, FEW + 1])
def test_a_payload_too_long_and_a_batch_too_large_are_refused_by_their_limits(count: int):
    stamp = Stamp(0, bytes(16))
    for size in (101, 1 << 17):
        with pytest.raises(LimitExceeded, match="payload"):
            from_payloads([bytes(size)] * count, stamp, limits=Limits(payload_bytes_max=100))
    occupied = from_payloads([bytes(100)] * count, stamp, limits=LIMITS).nbytes
    from_payloads([bytes(100)] * count, stamp, limits=Limits(batch_bytes_max=occupied))
    with pytest.raises(LimitExceeded, match="batch"):
        from_payloads([bytes(100)] * count, stamp, limits=Limits(batch_bytes_max=occupied - 1))


def test_payloads_that_together_pass_the_limit_of_one_are_taken():
    batch = from_payloads([bytes(60), bytes(60)], Stamp(0, bytes(16)), limits=Limits(payload_bytes_max=100))
    assert batch.payloads() == [bytes(60), bytes(60)]


@pytest.mark.parametrize("payloads", [[b"a", "text"], [b"a", 5], [b"a", None]])
def test_what_is_not_bytes_is_refused_among_bytes(payloads: list[Any]):
    with pytest.raises(InvalidMessage, match="payload"):
        batch_of(*payloads)


def test_memory_that_may_change_is_copied():
    changing = bytearray(b"before")
    batch = batch_of(b"first", changing)  # type: ignore[arg-type]
    changing[:] = b"after!"
    assert batch.payloads() == [b"first", b"before"]


# --- checked ----------------------------------------------------------------------------------------------------------


@given(payload_lists, times_us)
def test_plain_messages_read_the_same_either_way(payloads: list[bytes], created_us: int):
    data = encode(batch_of(*payloads, created_us=created_us))
    quick, general = quickly(data), in_the_general_way(data)
    assert_same(quick, general)
    assert encode(quick) == encode(general) == data
    assert encode(quick.slice(0, len(quick))) == data
    assert quick.slice(1, len(quick)).payloads() == payloads[1:]
    assert encode(quick.with_meta(quick.meta)) == data


@given(st.lists(st.tuples(st.binary(max_size=9), times_us), min_size=1, max_size=6))
def test_messages_of_many_times_read_the_same_either_way(messages: list[tuple[bytes, int]]):
    data = encode(concat([batch_of(payload, created_us=created_us) for payload, created_us in messages]))
    assert_same(quickly(data), in_the_general_way(data))


@pytest.mark.parametrize("fields", [{"key": b"k"}, {"headers": {"a": "b"}}, {"priority": 7}, {"expires_us": 5}])
@pytest.mark.parametrize("others", [0, 2])
def test_messages_that_are_not_plain_go_the_general_way(fields: dict[str, Any], others: int):
    batch = from_rows([Row(b"hello", **fields), *[Row(b"x")] * others], Stamp(5, bytes(16)), limits=LIMITS)
    assert quickly(encode(batch)) == batch
    assert batch.layout is None


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_first_and_the_last_moment_are_taken_and_no_other(row: int):
    data = encode(batch_of(b"a", b"b", b"c"))
    at = len(data) - 8 * (3 - row)
    for moment in (0, TIME_US_MAX):
        assert quickly(data[:at] + struct.pack("<q", moment) + data[at + 8 :]).payloads() == [b"a", b"b", b"c"]
    for moment in (-1, TIME_US_MAX + 1):
        with pytest.raises(InvalidMessage, match="created"):
            quickly(data[:at] + struct.pack("<q", moment) + data[at + 8 :])


@pytest.mark.parametrize("payloads", [[bytes(100)], [bytes(100), b"x"], [b"x", bytes(100)]])
def test_a_payload_may_be_as_long_as_its_limit_and_no_longer(payloads: list[bytes]):
    data = encode(batch_of(*payloads))
    assert len(quickly(data, Limits(payload_bytes_max=100))) == len(payloads)
    with pytest.raises(InvalidMessage, match="payload"):
        quickly(data, Limits(payload_bytes_max=99))


def test_a_batch_may_have_as_many_messages_and_bytes_as_its_limits_and_no_more():
    batch = batch_of(b"a", b"b", b"c")
    data = encode(batch)
    assert len(quickly(data, Limits(batch_messages_max=3, batch_bytes_max=batch.nbytes))) == 3
    with pytest.raises(LimitExceeded, match="messages"):
        quickly(data, Limits(batch_messages_max=2))
    with pytest.raises(LimitExceeded, match="batch"):
        quickly(data, Limits(batch_bytes_max=batch.nbytes - 1))


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 12), min_size=4, max_size=4))
def test_whatever_the_offsets_are_the_verdict_and_the_values_are_the_same(offsets: list[int]):
    data = encode(batch_of(b"one", b"two", b"three"))
    at = HEADER_BYTES + plain_layout(3, 11).offsets_at
    spoiled = data[:at] + struct.pack("<4i", *offsets) + data[at + 16 :]
    assert outcome(quickly, spoiled) == outcome(in_the_general_way, spoiled)


@pytest.mark.parametrize("offsets", [(0, 2**31 - 1, -2, 11), (0, -(2**31), 2**31 - 1, 11), (0, 11, 3, 11)])
def test_offsets_that_go_back_are_refused_even_where_differences_wrap_round(offsets: tuple[int, ...]):
    data = encode(batch_of(b"one", b"two", b"three"))
    at = HEADER_BYTES + plain_layout(3, 11).offsets_at
    with pytest.raises(InvalidBatch):
        quickly(data[:at] + struct.pack("<4i", *offsets) + data[at + 16 :])


few_offsets = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 40)
few_times = st.integers(0, 2**64 - 1) | st.sampled_from([0, MADE_US, TIME_US_MAX, TIME_US_MAX + 1])


@given(st.data(), st.integers(1, 6), st.integers(0, 40), st.integers(0, 40))
def test_what_is_compiled_and_what_is_not_come_to_the_same_verdict(
    data: st.DataObject, rows: int, payload_bytes: int, payload_bytes_max: int
):
    layout = plain_layout(rows, payload_bytes)
    body = bytearray(layout.stop)
    ends = [0, *sorted(data.draw(st.lists(st.integers(0, payload_bytes), min_size=rows - 1, max_size=rows - 1)))]
    offsets = data.draw(st.just([*ends, payload_bytes]) | st.lists(few_offsets, min_size=rows + 1, max_size=rows + 1))
    struct.pack_into(f"<{rows + 1}i", body, layout.offsets_at, *offsets)
    times = data.draw(st.just([MADE_US] * rows) | st.lists(few_times, min_size=rows, max_size=rows))
    struct.pack_into(f"<{rows}Q", body, layout.times_at, *times)
    view = memoryview(body)
    assert is_sound(view, layout, payload_bytes_max) == is_sound_in_python(view, layout, payload_bytes_max)


@pytest.mark.parametrize(
    ("rows", "offsets_at", "times_at"),
    [
        (-1, 0, 0),
        (1, -8, 0),
        (1, 0, -8),
        (3, 0, 16),
        (3, 24, 0),
        (1, 64, 0),
        (2**60, 0, 0),
        (2**62, 0, 0),
        (1, 2**63 - 1, 0),
    ],
)
def test_what_is_compiled_reads_nothing_that_is_not_there(
    require_service: Callable[[str, bool, str], None], rows: int, offsets_at: int, times_at: int
):
    require_service(
        "Sealane's compiled part", compiled is not None, "apt-get install gcc libc6-dev, and `make setup` again"
    )
    assert not compiled.is_sound(memoryview(bytes(32)), rows, offsets_at, times_at, 0, 0, 1)


@pytest.mark.parametrize("payloads", [[b"some payload"], [b"some", b"", b"payload"]])
def test_whatever_bit_is_flipped_the_verdict_and_the_values_are_the_same(payloads: list[bytes]):
    data = encode(batch_of(*payloads))
    for place in range(8 * len(data)):
        spoiled = bytearray(data)
        spoiled[place // 8] ^= 1 << place % 8
        assert outcome(quickly, bytes(spoiled)) == outcome(in_the_general_way, bytes(spoiled)), f"bit {place}"


@pytest.mark.parametrize("payloads", [[b"some payload"], [b"some", b"payload"]])
def test_bytes_that_are_cut_off_anywhere_or_go_on_are_refused(payloads: list[bytes]):
    data = encode(batch_of(*payloads))
    for length in range(len(data)):
        with pytest.raises(InvalidBatch):
            quickly(data[:length])
    with pytest.raises(InvalidBatch):
        quickly(data + bytes(8))


def test_plain_messages_that_were_written_otherwise_are_read_too():
    batch = batch_of(b"one", b"two")
    data = encode(batch)
    begin, body_at = HEADER_BYTES, HEADER_BYTES + HEAD_BYTES
    # Longer metadata than there need be, as another library may write it.
    prefix = data[begin : begin + 4] + (HEAD_BYTES - 8 + 16).to_bytes(4, "little")
    otherwise = data[:begin] + prefix + data[begin + 8 : body_at] + bytes(16) + data[body_at:]
    assert quickly(otherwise).layout is None
    assert quickly(otherwise) == batch


# --- joined -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(payload_lists, times_us), min_size=2, max_size=5))
def test_plain_batches_join_to_the_last_bit_as_arrow_joins_them(parts: list[tuple[list[bytes], int]]):
    batches = [batch_of(*payloads, created_us=created_us) for payloads, created_us in parts]
    quick, general = concat(batches), concat([made_by_arrow(batch) for batch in batches])
    assert encode(quick) == encode(general)
    assert_same(quick, general)
    assert_same(quickly(encode(quick)), in_the_general_way(encode(quick)))


@given(payload_lists, st.data())
def test_what_is_cut_out_is_the_same_to_the_last_bit_as_a_slice(payloads: list[bytes], data: st.DataObject):
    start = data.draw(st.integers(0, len(payloads)))
    stop = data.draw(st.integers(start, len(payloads) + 1))
    whole = batch_of(*payloads)
    quick, general = whole.cut(start, stop), made_by_arrow(whole).cut(start, stop)
    assert (quick == general, quick.payloads()) == (True, payloads[start:stop])
    assert (quick.nbytes, quick.first_created_us) == (general.nbytes, general.first_created_us)
    assert encode(quick) == encode(general)


def test_few_messages_are_cut_out_by_a_copy_and_many_are_not():
    whole = quickly(encode(batch_of(*[bytes(1000)] * 100)))
    assert whole.cut(90, 100).encoded is not None
    assert whole.cut(0, 90).encoded is None
    assert whole.cut(0, 100) is whole
    with pytest.raises(IndexError):
        whole.cut(5, 4)


@pytest.mark.parametrize("size", [100, 64 << 10])
def test_what_was_cut_out_is_joined_with_whole_batches(size: int):
    whole = batch_of(b"a", b"b")
    part = quickly(encode(batch_of(b"c", b"d" * size, b"e"))).cut(1, 2)
    assert concat([whole, part]).payloads() == [b"a", b"b", b"d" * size]
    assert concat([part, whole.take(np.array([1, 0]))]).payloads() == [b"d" * size, b"b", b"a"]
