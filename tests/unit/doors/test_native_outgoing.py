"""What goes out of the native door: the same messages, at the same offsets, in as few pieces as make sense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from sealane.doors.native.merging import MERGED_MESSAGES_MAX, SMALL_BYTES, WORTH_MERGING, merged
from sealane.doors.native.outgoing import browsed_parts, deliver_frames, placed_shares
from sealane.engine import Packed, Stored
from sealane.message import Batch, BatchMeta, Limits, Row, Stamp, decode, encode, from_payloads, from_rows
from sealane.message.codec import packed_size
from sealane.node.deliveries import Delivery, Part, cut
from sealane.node.receipts import Receipts, Share
from sealane.wire.messages import Deliver, PlacedShare

LIMITS = Limits()
STAMP = Stamp(1_760_000_000_000_000, bytes(range(16)))


def batch_of(*payloads: bytes, **meta: object) -> Batch:
    batch = from_payloads(payloads, STAMP, limits=LIMITS)
    return batch.with_meta(BatchMeta(**meta)) if meta else batch  # type: ignore[arg-type]


def full_batch(first: int, count: int) -> Batch:
    rows = [
        Row(payload=b"%d" % n, key=b"k%d" % n, headers={"n": str(n)}, priority=7) for n in range(first, first + count)
    ]
    return from_rows(rows, STAMP, limits=LIMITS)


def delivery_of(*parts: Part, attempts: tuple[tuple[BitMap64, int], ...] = ()) -> Delivery:
    return Delivery("default/orders", 0, "workers", 9, 123, parts, attempts)


def opened(deliver: Deliver, body: list[memoryview]) -> list[tuple[int, dict[str, object]]]:
    """The messages with their offsets, as a client finds them."""
    whole, at, found = b"".join(body), 0, []
    for first, count, size, offsets in deliver.parts:
        rows = decode(whole[at : at + size], limits=LIMITS).records.to_pylist()
        places = range(first, first + count) if offsets is None else np.frombuffer(offsets, "<i8").tolist()
        assert len(rows) == count == len(places)
        assert places[0] == first
        found += list(zip(places, rows, strict=True))
        at += size
    assert at == len(whole)
    return found


def rows_of(parts: list[Part]) -> list[tuple[int, dict[str, object]]]:
    return [
        (int(offset), row)
        for part in parts
        for offset, row in zip(part.offsets, part.batch.records.to_pylist(), strict=True)
    ]


@st.composite
def some_parts(draw: st.DrawFn) -> list[Part]:
    parts, at = [], 0
    for _ in range(draw(st.integers(1, 8))):
        at += draw(st.sampled_from([0, 0, 0, 5]))
        count = draw(st.integers(1, 6))
        batch = draw(st.sampled_from([full_batch(at, count), batch_of(*[b"%d" % at] * count)]))
        if draw(st.booleans()):
            batch = batch.with_meta(BatchMeta(producer=b"p", sequence=at, trace=draw(st.sampled_from([None, "t"]))))
        kind = draw(st.sampled_from(["whole", "slice", "scattered"]))
        if kind == "whole":
            parts.append(Part(range(at, at + count), batch))
        elif kind == "slice":
            parts.append(Part(range(at + count // 2, at + count), batch.slice(count // 2, count)))
        else:
            chosen = np.arange(0, count, 2)
            parts.append(Part((chosen + at).astype(np.uint64), batch.take(chosen)))
        at += count
    return parts


@settings(max_examples=150)
@given(some_parts(), st.sampled_from([1, 1_000, 3_000, 1 << 20]))
def test_any_delivery_arrives_as_it_was_however_it_is_cut_and_joined(parts: list[Part], bytes_max: int) -> None:
    frames = list(deliver_frames(7, delivery_of(*parts), bytes_max))
    assert [row for frame in frames for row in opened(*frame)] == rows_of(parts)
    assert {(message.consumer, message.lease) for message, _ in frames} == {(7, 9)}


def test_small_parts_become_one() -> None:
    parts = [Part(range(n, n + 1), batch_of(b"%d" % n, producer=b"p", sequence=n)) for n in range(100)]
    (one,) = merged(parts)
    assert one.offsets == range(100)
    assert one.batch.meta == BatchMeta()
    assert rows_of([one]) == rows_of(parts)


def test_what_differs_as_a_whole_stays_apart() -> None:
    a: dict[str, object] = {"trace": "a"}
    metas: list[dict[str, object]] = [{}, a, a, a, {"schema_id": 5}, {"given_ids": True}]
    parts = [Part(range(n, n + 1), batch_of(b"x", **meta)) for n, meta in enumerate(metas)]
    assert [part.offsets for part in merged(parts)] == [range(1), range(1, 4), range(4, 5), range(5, 6)]


def test_too_few_to_be_worth_it_stay_apart() -> None:
    parts = [Part(range(n, n + 1), batch_of(b"x")) for n in range(WORTH_MERGING)]
    assert merged(parts[1:]) == parts[1:]
    assert len(merged(parts)) == 1
    large = Part(range(9, 10), batch_of(b"x" * SMALL_BYTES))
    assert merged([*parts[1:], large]) == [*parts[1:], large]


def test_what_is_cut_from_plain_batches_is_merged_without_opening_them() -> None:
    batches = [batch_of(*[b"%d" % n] * 3) for n in range(4)]
    stored = [Stored(3 * n, batch) for n, batch in enumerate(batches)]
    parts = [part for each in stored if (part := cut(each, BitMap64(range(2, 11)))[0]) is not None]
    (one,) = merged(parts)
    assert (one.offsets, one.batch.payloads()) == (range(2, 11), [b"0", b"1", b"1", b"1", b"2", b"2", b"2", b"3", b"3"])
    assert all(batch.layout is not None for batch in (one.batch, *(part.batch for part in parts)))


def test_large_parts_are_not_copied() -> None:
    large = [Part(range(n, n + 1), batch_of(b"x" * SMALL_BYTES)) for n in range(3)]
    assert merged(large) == large


def test_a_merged_part_has_a_limit() -> None:
    half = MERGED_MESSAGES_MAX // 2
    batch = from_payloads([b""] * half, STAMP, limits=LIMITS)
    small = [Part(range(n * 100, n * 100 + 100), batch.slice(0, 100)) for n in range(MERGED_MESSAGES_MAX // 100 + 1)]
    assert [len(part.batch) for part in merged(small)] == [MERGED_MESSAGES_MAX, 100]


def test_attempts_go_with_their_messages() -> None:
    parts = [Part(range(n, n + 1), batch_of(b"x" * SMALL_BYTES)) for n in range(3)]
    attempts = ((BitMap64([0, 2]), 2), (BitMap64([1]), 3))
    whole = [message.attempts for message, _ in deliver_frames(7, delivery_of(*parts, attempts=attempts), 1 << 30)]
    assert whole == [[([0, 1, 2, 3], 2), ([1, 2], 3)]]
    cut = [message.attempts for message, _ in deliver_frames(7, delivery_of(*parts, attempts=attempts), SMALL_BYTES)]
    assert cut == [[([0, 1], 2)], [([1, 2], 3)], [([2, 3], 2)]]


def test_a_browsed_log_has_at_least_one_message_however_little_fits() -> None:
    stored = [Stored(5, batch_of(b"a", b"b", b"c", b"d")), Stored(9, batch_of(b"e"))]
    parts, body = browsed_parts(stored, 1)
    assert [part[:2] for part in parts] == [(5, 1)]
    assert sum(map(len, body)) == parts[0][2]
    assert [part[:2] for part in browsed_parts(stored, 1 << 20)[0]] == [(5, 4), (9, 1)]
    assert browsed_parts([], 1) == ([], [])


def packed(base: int, batch: Batch) -> Packed:
    data = memoryview(encode(batch, compression="zstd"))
    size = packed_size(data)
    assert size is not None
    return Packed(base, len(batch), data, size)


def test_what_is_packed_is_sent_so_beside_what_is_not() -> None:
    batches = [batch_of(b"a" * 1_000, b"b"), batch_of(b"c"), batch_of(b"d" * 1_000)]
    stored: list[Stored | Packed] = [packed(0, batches[0]), Stored(2, batches[1]), packed(3, batches[2])]
    parts, body = browsed_parts(stored, 1 << 20)
    assert [part[:2] for part in parts] == [(0, 2), (2, 1), (3, 1)]
    whole, at = b"".join(body), 0
    for (_, _, size, _), batch in zip(parts, batches, strict=True):
        assert decode(whole[at : at + size], limits=LIMITS, unpacked_bytes_max=10_000) == batch
        at += size
    assert at == len(whole) < 2_000


def test_what_would_unpack_to_more_than_a_frame_holds_is_sent_in_pieces_that_need_no_unpacking() -> None:
    batch = batch_of(*[b"x" * 1_000] * 64)
    parts, body = browsed_parts([packed(5, batch), packed(69, batch)], 20_000)
    assert [part[:2] for part in parts] == [(5, 16)]
    assert decode(b"".join(body), limits=LIMITS).payloads() == [b"x" * 1_000] * 16


@pytest.mark.parametrize(
    ("share", "placed"),
    [
        (Share(0, None, range(5, 8)), PlacedShare(0, 5, 3)),
        (Share(0, None, [5, 6, 7]), PlacedShare(0, 5, 3)),
        (Share(1, np.array([0, 2]), range(5, 7)), PlacedShare(1, 5, 2, None, np.array([0, 2], "<u4").tobytes())),
        (Share(0, None, [7, 5, 6]), PlacedShare(0, 7, 3, np.array([7, 5, 6], "<i8").tobytes())),
    ],
)
def test_receipts_are_told_in_the_shortest_way(share: Share, placed: PlacedShare) -> None:
    assert placed_shares(Receipts(batch_of(b"a", b"b", b"c"), [share])) == [placed]
