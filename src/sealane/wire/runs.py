"""Offsets as runs: ascending, half-open, `[start, stop, start, stop, …]`; short for what lies together."""

from __future__ import annotations

from pyroaring import BitMap64

from sealane.delivery.offsets import runs as runs_of
from sealane.delivery.offsets import span
from sealane.wire.errors import ProtocolError

RUN_OFFSETS_MAX = 1 << 24
"""Messages that one answer may be about: far more than a lease holds, and a bitmap of them is still small."""


def to_runs(offsets: BitMap64) -> list[int]:
    return [edge for run in runs_of(offsets) for edge in run]


def from_runs(runs: list[int]) -> BitMap64:
    """Raises `ProtocolError` for what are not ascending runs of at most `RUN_OFFSETS_MAX` offsets in all."""
    if len(runs) == 2 and 0 <= runs[0] < runs[1] < 1 << 63 and runs[1] - runs[0] <= RUN_OFFSETS_MAX:
        return span(runs[0], runs[1])
    if len(runs) % 2:
        raise ProtocolError("bad-message", "runs of offsets come in pairs of start and stop")
    offsets = BitMap64()
    before, count = -1, 0
    for start, stop in zip(runs[::2], runs[1::2], strict=True):
        count += stop - start
        if not before < start < stop < 1 << 63 or count > RUN_OFFSETS_MAX:
            problem = f"runs of offsets must ascend and hold at most {RUN_OFFSETS_MAX:,}, not [{start}, {stop}) here"
            raise ProtocolError("bad-message", problem)
        offsets.add_range(start, stop)
        before = stop
    return offsets
