"""What messages have in common."""

from __future__ import annotations

import msgspec

Runs = list[int]
"""Offsets as ascending, half-open runs; see `sealane.wire.runs`."""
StartPoint = str | dict[int, int] | int
"""`"earliest"`, `"latest"`, offsets by partition, or a moment in µs since 1970."""


class Message(msgspec.Struct, array_like=True, gc=False):
    """What is said without a number."""


class Numbered(msgspec.Struct, array_like=True):
    """A request or the answer to one, which has the same number."""

    call: int


class LeaseRuns(msgspec.Struct, array_like=True):
    """Leased messages; `runs` None: all of the lease."""

    partition: int
    lease: int
    runs: Runs | None = None
