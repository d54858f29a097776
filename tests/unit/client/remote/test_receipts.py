"""Receipts as they come over the wire: the short way for what lies together and the general one say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.client.remote.deliveries import receipts_of
from sealane.message import Batch, Limits, Stamp, from_payloads
from sealane.wire.errors import ProtocolError
from sealane.wire.messages import PlacedShare


def batch_of(count: int) -> Batch:
    return from_payloads([b"x"] * count, Stamp(1, bytes(range(16))), limits=Limits())


@given(st.integers(1, 50), st.integers(0, 1 << 60), st.integers(0, 1_000))
def test_what_lies_together_is_the_same_however_it_is_said(count: int, first: int, partition: int) -> None:
    batch = batch_of(count)
    offsets = np.arange(first, first + count, dtype="<i8").tobytes()
    rows = np.arange(count, dtype="<u4").tobytes()
    short = receipts_of([PlacedShare(partition, first, count)], batch)
    for share in (PlacedShare(partition, 0, count, offsets), PlacedShare(partition, first, count, None, rows)):
        general = receipts_of([share], batch)
        assert list(short) == list(general)
        assert [short[place] for place in range(count)] == [general[place] for place in range(count)]
        assert short[-1] == general[-1] == list(general)[-1]
    assert len(short) == count


@pytest.mark.parametrize("place", [1, -2])
def test_of_one_message_there_is_one_receipt(place: int) -> None:
    receipts = receipts_of([PlacedShare(0, 7, 1)], batch_of(1))
    assert receipts[0] == receipts[-1] == next(iter(receipts))
    with pytest.raises(IndexError):
        receipts[place]


@given(st.integers(1, 5), st.integers(-5, 10))
def test_receipts_for_another_number_of_messages_are_refused(count: int, told: int) -> None:
    if told == count:
        return
    with pytest.raises(ProtocolError):
        receipts_of([PlacedShare(0, 0, told)], batch_of(count))
