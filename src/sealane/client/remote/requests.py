"""Requests as the node will read them: what it could not is refused here, since it would end the connection over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from pyroaring import BitMap64

from sealane.client.remote.deliveries import LEASE_MASK
from sealane.errors import InvalidArgument, LimitExceeded
from sealane.wire.frames import HEADER_BYTES_MAX, Buffer
from sealane.wire.messages import LeaseRuns
from sealane.wire.runs import to_runs

RUN_EDGES_MAX = 16_384
"""Starts and stops of runs in one answer: at most nine bytes each, so that its header is well below its limit."""

LEASE_EDGES = 3
"""What a lease takes beside its runs, counted as runs."""

R = TypeVar("R")

_encode = msgspec.msgpack.Encoder().encode
_UNSPEAKABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)


def checked(request: R) -> R:
    """The request, if every field has a value of its type. Raises `InvalidArgument`."""
    try:
        msgspec.msgpack.decode(_encode(request), type=type(request))
    except _UNSPEAKABLE as error:
        raise InvalidArgument(type(request).__name__, f"an argument cannot be sent to the node: {error}") from None
    return request


def check_size(pieces: list[Buffer], frame_bytes_max: int) -> None:
    """Raises `LimitExceeded` for a frame that the node would not take."""
    length = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
    if length > frame_bytes_max:
        raise LimitExceeded("request", frame_bytes_max, length, setting="limits.batch_bytes_max")
    if len(pieces[0]) > HEADER_BYTES_MAX:
        raise LimitExceeded(
            "request", HEADER_BYTES_MAX, len(pieces[0]), setting="none changes it; ask for less at once"
        )


def lease_runs(partition: int, lease: int, offsets: BitMap64 | None) -> LeaseRuns:
    return LeaseRuns(partition, lease & LEASE_MASK, None if offsets is None else to_runs(offsets))


def split_runs(partition: int, lease: int, offsets: BitMap64 | None) -> Iterator[LeaseRuns]:
    """The same in as many answers as it takes: messages that are scattered need a run each."""
    whole = lease_runs(partition, lease, offsets)
    if whole.runs is None or len(whole.runs) <= RUN_EDGES_MAX:
        yield whole
        return
    for start in range(0, len(whole.runs), RUN_EDGES_MAX):
        yield LeaseRuns(partition, whole.lease, whole.runs[start : start + RUN_EDGES_MAX])


def grouped_runs(leases: Sequence[tuple[int, int, BitMap64]]) -> list[list[LeaseRuns]]:
    """Several leases in groups that fit a message each; at least one group, which may be empty."""
    groups: list[list[LeaseRuns]] = [[]]
    edges = 0
    for each in leases:
        for runs in split_runs(*each):
            size = LEASE_EDGES + len(runs.runs or ())
            if edges + size > RUN_EDGES_MAX and groups[-1]:
                groups.append([])
                edges = 0
            groups[-1].append(runs)
            edges += size
    return groups
