"""Answers with stored batches: a node that sends what nobody asked for is not believed."""

from __future__ import annotations

import pytest

from sealane.client.remote.deliveries import WirePart, stored_of
from sealane.errors import InvalidBatch, LimitExceeded
from sealane.message import Batch, Limits, Stamp, encode, from_payloads
from sealane.wire.errors import ProtocolError

LIMITS = Limits(batch_bytes_max=100_000)
"""Of the node that answers."""


def batch_of(payload_bytes: int) -> Batch:
    return from_payloads([b"x" * payload_bytes], Stamp(1, bytes(range(16))), limits=Limits())


def answer(*batches: Batch) -> tuple[list[WirePart], memoryview]:
    data = [encode(batch, compression="zstd") for batch in batches]
    parts: list[WirePart] = [(number, 1, len(each), None) for number, each in enumerate(data)]
    return parts, memoryview(b"".join(data))


def test_packed_batches_are_opened() -> None:
    batches = [batch_of(1_000), batch_of(5_000)]
    found = stored_of(*answer(*batches), LIMITS, 10_000)
    assert [(each.base, each.batch) for each in found] == list(enumerate(batches))


def test_a_batch_that_unpacks_to_more_than_the_node_takes_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="unpacked batch"):
        stored_of(*answer(batch_of(200_000)), LIMITS, 1 << 30)


def test_many_batches_that_unpack_to_far_more_than_was_asked_for_are_refused() -> None:
    many = [batch_of(90_000)] * 20
    stored_of(*answer(*many), LIMITS, 2_000_000)
    with pytest.raises(ProtocolError, match="asked for"):
        stored_of(*answer(*many), LIMITS, 1_000_000)


def test_another_number_of_messages_than_was_announced_is_refused() -> None:
    parts, body = answer(batch_of(1_000))
    (first, count, size, offsets) = parts[0]
    with pytest.raises(ProtocolError, match="announced"):
        stored_of([(first, count + 1, size, offsets)], body, LIMITS, 10_000)


def test_what_is_cut_off_is_refused() -> None:
    parts, body = answer(batch_of(1_000))
    (first, count, size, offsets) = parts[0]
    with pytest.raises(InvalidBatch):
        stored_of([(first, count, size - 5, offsets)], body, LIMITS, 10_000)
