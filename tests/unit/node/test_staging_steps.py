"""Steps of a publish: all that is staged, each message in one of them, in order, and none larger than it need be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sealane.delivery.staging import StagedBatch
from sealane.node.staging.steps import Piece, bytes_of, messages_of, next_step

BATCHES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 200)), max_size=20).map(
    lambda sizes: [
        StagedBatch(number, "default/orders", 1_000 * number, count, count * size, given_ids=False)
        for number, (count, size) in enumerate(sizes)
    ]
)


def rows(pieces: list[Piece]) -> list[int]:
    """The places of the messages in the log."""
    return [piece.batch.base + row for piece in pieces for row in range(piece.start, piece.stop)]


@given(batches=BATCHES, bytes_max=st.integers(1, 20_000), messages_max=st.one_of(st.none(), st.integers(1, 100)))
def test_steps_take_every_message_once_and_in_order(
    batches: list[StagedBatch], bytes_max: int, messages_max: int | None
) -> None:
    taken: list[int] = []
    while pieces := next_step(batches, len(taken), bytes_max=bytes_max, messages_max=messages_max):
        step = rows(pieces)
        assert messages_max is None or len(step) <= messages_max
        assert len(pieces) == 1 or sum(len(piece) * piece.batch.nbytes / piece.batch.count for piece in pieces) <= (
            bytes_max + len(pieces)  # Parts of batches are counted in whole bytes.
        )
        taken += step
    assert taken == [batch.base + row for batch in batches for row in range(batch.count)]
    assert len(taken) == messages_of(batches)


@given(batches=BATCHES)
def test_what_is_small_is_one_step(batches: list[StagedBatch]) -> None:
    assert len(next_step(batches, 0, bytes_max=bytes_of(batches) + 1)) == len(batches)
