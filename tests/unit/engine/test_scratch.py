"""Memory that is used again from one group to the next."""

from __future__ import annotations

from sealane.engine.local.scratch import SCRATCH_BYTES_MAX, Scratch


def test_pieces_do_not_overlap_and_are_as_long_as_asked() -> None:
    scratch = Scratch()
    for _ in range(3):
        pieces = [scratch.take(length) for length in (10, 0, 5_000, 1)]
        for number, piece in enumerate(pieces):
            piece[:] = bytes([number]) * len(piece)
        assert [bytes(piece) for piece in pieces] == [bytes([n]) * size for n, size in enumerate((10, 0, 5_000, 1))]
        scratch.clear()


def test_memory_is_used_again_once_it_is_cleared() -> None:
    scratch = Scratch()
    scratch.take(1_000)
    scratch.clear()
    scratch.take(1_000)[:] = b"a" * 1_000
    scratch.clear()
    assert bytes(scratch.take(1_000)) == b"a" * 1_000


def test_what_is_larger_than_the_limit_is_had_and_not_kept() -> None:
    scratch = Scratch()
    assert len(scratch.take(SCRATCH_BYTES_MAX + 1)) == SCRATCH_BYTES_MAX + 1
    scratch.clear()
    assert len(scratch.take(SCRATCH_BYTES_MAX)) == SCRATCH_BYTES_MAX
    assert len(scratch.take(1)) == 1
