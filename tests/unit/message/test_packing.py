"""Compressed batches from someone else: they unpack to what they say, within a limit, or are refused by name."""

from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import Limits, decode, encode, from_payloads
from sealane.message.codec import HEADER_BYTES, packed_size
from sealane.message.packing import unpack_foreign
from tests.unit.message.strategies import LIMITS, STAMP, batches

BATCH = from_payloads([b"%d" % number * 50 for number in range(200)], STAMP, limits=LIMITS)
PACKED = encode(BATCH, compression="zstd")
SIZE = packed_size(memoryview(PACKED)) or 0


def packed_body(size: int, content: bytes) -> pa.Buffer:
    """A body that says `size`, whatever its content is."""
    return pa.py_buffer(struct.pack("<Q", size) + pa.compress(content, codec="zstd", asbytes=True))


@given(batches())
def test_what_was_packed_is_the_same_batch_to_who_unpacks_it(batch):
    data = encode(batch, compression="zstd")
    size = packed_size(memoryview(data))
    assert size is not None
    assert decode(data, limits=LIMITS, unpacked_bytes_max=size) == batch
    assert packed_size(memoryview(encode(batch))) is None


def test_who_did_not_ask_for_it_refuses_it():
    with pytest.raises(InvalidBatch, match="it is compressed"):
        decode(PACKED, limits=Limits())


def test_what_would_unpack_to_more_than_is_allowed_is_refused():
    decode(PACKED, limits=Limits(), unpacked_bytes_max=SIZE)
    with pytest.raises(LimitExceeded, match="unpacked batch"):
        decode(PACKED, limits=Limits(), unpacked_bytes_max=SIZE - 1)


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 65_791, 65_792, 1_000_000])
def test_every_way_in_which_a_frame_says_its_size_is_understood(length):
    content = random.Random(length).randbytes(length)
    assert unpack_foreign(packed_body(length, content), length).to_pybytes() == content


@pytest.mark.parametrize("difference", [-1, 1, 1_000])
def test_another_size_than_that_of_the_content_is_refused(difference):
    with pytest.raises(InvalidBatch, match="says otherwise"):
        unpack_foreign(packed_body(5_000 + difference, bytes(5_000)), 10_000)


def test_a_frame_that_does_not_say_its_size_is_refused():
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(bytes(5_000))
    streamed = pa.py_buffer(struct.pack("<Q", 5_000) + sink.getvalue().to_pybytes())
    with pytest.raises(InvalidBatch, match="says otherwise"):
        unpack_foreign(streamed, 10_000)


def test_more_frames_than_one_are_refused():
    two = packed_body(5_000, bytes(5_000)).to_pybytes() + pa.compress(b"more", codec="zstd", asbytes=True)
    with pytest.raises(InvalidBatch, match="cannot be unpacked"):
        unpack_foreign(pa.py_buffer(two), 10_000)


@pytest.mark.parametrize("length", range(HEADER_BYTES, HEADER_BYTES + 24))
def test_what_is_cut_off_is_refused(length):
    with pytest.raises(InvalidBatch):
        decode(PACKED[:length], limits=Limits(), unpacked_bytes_max=1 << 20)


@given(st.integers(HEADER_BYTES, len(PACKED) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_makes_a_batch_that_keeps_every_rule(place, change):
    data = bytearray(PACKED)
    data[place] ^= change
    try:
        batch = decode(bytes(data), limits=Limits(), unpacked_bytes_max=1 << 20)
    except (InvalidBatch, InvalidMessage, LimitExceeded):
        return
    batch.records.validate(full=True)
    assert len(batch.payloads()) == len(batch)
