"""The memory tail: recent batches by offset, bounded in bytes."""

from __future__ import annotations

from sealane.engine import Stored
from sealane.engine.local.tail import BATCH_OVERHEAD_BYTES, LogTail, Tail
from sealane.message import Limits, Stamp, from_payloads


def stored(base: int, count: int = 2) -> Stored:
    return Stored(base, from_payloads([b"x"] * count, Stamp(1, bytes(16)), limits=Limits()))


def test_the_batch_that_holds_an_offset_is_found() -> None:
    tail, log = Tail(1 << 20), LogTail()
    for base in (10, 12, 20):
        tail.add(log, stored(base), 1)
    assert [found.base if (found := log.find(offset)) else None for offset in (9, 10, 11, 12, 13, 14, 20, 22)] == [
        None, 10, 10, 12, 12, None, 20, None,
    ]  # fmt: skip


def test_the_oldest_batch_of_any_log_goes_first() -> None:
    tail, first, second = Tail(3 * (BATCH_OVERHEAD_BYTES + 100)), LogTail(), LogTail()
    tail.add(first, stored(0), 100)
    tail.add(second, stored(0), 100)
    tail.add(first, stored(2), 100)
    assert first.find(0) is not None
    tail.add(second, stored(2), 100)
    assert first.find(0) is None
    assert second.find(0) is not None
    tail.add(second, stored(4), 100)
    assert second.find(0) is None
    assert tail.bytes_used <= 3 * (BATCH_OVERHEAD_BYTES + 100)


def test_a_batch_larger_than_the_limit_is_not_kept() -> None:
    tail, log = Tail(BATCH_OVERHEAD_BYTES), LogTail()
    tail.add(log, stored(0), 1)
    assert log.find(0) is None
    assert tail.bytes_used == 0
    tail.add(log, stored(2), 0)
    assert log.find(2) is not None


def test_a_long_life_leaves_no_trace_of_what_was_forgotten() -> None:
    tail, log = Tail(10 * BATCH_OVERHEAD_BYTES), LogTail()
    for base in range(10_000):
        tail.add(log, stored(2 * base), 0)
    assert len(log) == 10
    assert len(log._bases) < 200
    assert log.find(2 * 9_999) is not None
    assert log.find(2 * 9_989) is None


def test_trimmed_batches_are_let_go_of() -> None:
    tail, log = Tail(1 << 20), LogTail()
    for base in (0, 2, 4):
        tail.add(log, stored(base), 1)
    log.trim(3)
    assert log.find(0) is None
    assert log.find(2) is not None, "it holds offset 3, which is not trimmed"
    log.trim(6)
    assert log.find(5) is None
