"""One plain message is checked without Arrow, and nobody can tell: every verdict and every value is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded, SealaneError
from sealane.message import Batch, Limits, Row, Stamp, codec, decode, encode, from_rows
from sealane.message.schema import TIME_US_MAX
from sealane.message.single import SINGLE_BYTES

LIMITS = Limits()


def one(payload: bytes = b"hello", created_us: int = 1_700_000_000_000_000, **fields: Any) -> Batch:
    return from_rows([Row(payload, **fields)], Stamp(created_us, bytes(range(16))), limits=LIMITS)


def aligned(data: bytes) -> bytearray:
    return bytearray(data)  # Memory of its own begins at a multiple of 8, the batch's body too.


def in_the_general_way(monkeypatch: pytest.MonkeyPatch, data: bytes, limits: Limits = LIMITS) -> Batch:
    with monkeypatch.context() as patched:
        patched.setattr(codec, "check_single", lambda data, limits: None)
        return decode(aligned(data), limits=limits)


def outcome(read: Callable[[bytes], Batch], data: bytes) -> object:
    try:
        batch = read(data)
    except SealaneError as error:
        return type(error)
    return len(batch), batch.ids(), batch.payloads(), batch.first_created_us, batch.nbytes


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 100, 4096, 60_000, 70_000])
def test_a_single_message_reads_the_same_either_way(monkeypatch: pytest.MonkeyPatch, size: int):
    data = encode(one(bytes(range(256)) * (size // 256) + bytes(size % 256)))
    quick, general = decode(aligned(data), limits=LIMITS), in_the_general_way(monkeypatch, data)
    assert (len(quick), quick.nbytes, quick.first_created_us) == (1, general.nbytes, general.first_created_us)
    assert quick == general
    assert (quick.ids(), quick.payloads(), quick.traits) == (general.ids(), general.payloads(), general.traits)
    assert encode(quick) == encode(general) == data
    assert encode(quick.slice(0, 1)) == data
    assert len(quick.slice(0, 0)) == 0


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, 4096, SINGLE_BYTES])
def test_a_single_message_is_made_as_arrow_would_make_it(size: int):
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    made = one(payload)
    assert made.encoded is not None, "it was made without Arrow"
    by_arrow = made.records.select(["id", "payload", "created"]).serialize()
    assert made.encoded.equals(by_arrow)
    assert (made.payloads(), made.ids()) == (made.records.column("payload").to_pylist(), made.column(0).to_pylist())


def test_a_single_payload_too_long_is_refused_by_its_limit():
    for size in (101, SINGLE_BYTES + 1):
        with pytest.raises(LimitExceeded, match="payload"):
            from_rows([Row(bytes(size))], Stamp(0, bytes(16)), limits=Limits(payload_bytes_max=100))
    with pytest.raises(LimitExceeded, match="batch"):
        from_rows([Row(bytes(100))], Stamp(0, bytes(16)), limits=Limits(batch_bytes_max=131))


@pytest.mark.parametrize("fields", [{"key": b"k"}, {"headers": {"a": "b"}}, {"priority": 7}, {"expires_us": 5}])
def test_a_message_that_is_not_plain_goes_the_general_way(fields: dict[str, Any]):
    batch = one(**fields)
    assert decode(aligned(encode(batch)), limits=LIMITS) == batch


def test_the_first_and_the_last_moment_are_taken_and_no_other(monkeypatch: pytest.MonkeyPatch):
    for moment in (0, TIME_US_MAX):
        assert decode(aligned(encode(one(created_us=moment))), limits=LIMITS).first_created_us == moment
    data = encode(one(created_us=0x0123456789ABCD))
    late = data.replace((0x0123456789ABCD).to_bytes(8, "little"), (TIME_US_MAX + 1).to_bytes(8, "little"))
    with pytest.raises(InvalidMessage, match="created"):
        decode(aligned(late), limits=LIMITS)


def test_a_payload_may_be_as_long_as_its_limit_and_no_longer():
    data = encode(one(bytes(100)))
    assert len(decode(aligned(data), limits=Limits(payload_bytes_max=100))) == 1
    with pytest.raises(InvalidMessage, match="payload"):
        decode(aligned(data), limits=Limits(payload_bytes_max=99))


def test_whatever_bit_is_flipped_the_verdict_and_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch):
    data = encode(one(b"some payload"))
    for place in range(8 * len(data)):
        spoiled = bytearray(data)
        spoiled[place // 8] ^= 1 << place % 8
        quick = outcome(lambda data: decode(aligned(data), limits=LIMITS), bytes(spoiled))
        general = outcome(lambda data: in_the_general_way(monkeypatch, data), bytes(spoiled))
        assert quick == general, f"bit {place}"


def test_bytes_that_are_cut_off_anywhere_are_refused():
    data = encode(one(b"some payload"))
    for length in range(len(data)):
        with pytest.raises(InvalidBatch):
            decode(aligned(data[:length]), limits=LIMITS)
