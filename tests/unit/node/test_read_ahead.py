"""A reader that lags is served from the run that was read with the batch it needed before."""

from __future__ import annotations

from sealane.engine import PartitionKey, Stored
from sealane.message import Limits, Stamp, from_payloads
from sealane.node.read_ahead import RUNS_MAX, ReadAhead

KEY = PartitionKey("default", "orders", 1, 0)


def run_of(*sizes: int, base: int = 0) -> list[Stored]:
    run = []
    for size in sizes:
        run.append(Stored(base, from_payloads([b"x"] * size, Stamp(1, bytes(16)), limits=Limits())))
        base += size
    return run


def test_every_offset_of_the_run_is_found_and_none_beside_it() -> None:
    ahead = ReadAhead()
    ahead.keep(KEY, run_of(3, 2, base=10))
    found = {offset: stored.base for offset in range(8, 17) if (stored := ahead.find(KEY, offset))}
    assert found == {10: 10, 11: 10, 12: 10, 13: 13, 14: 13}


def test_an_offset_in_a_gap_of_the_run_is_not_found() -> None:
    ahead = ReadAhead()
    ahead.keep(KEY, run_of(2, base=0) + run_of(2, base=5))
    assert ahead.find(KEY, 3) is None


def test_only_the_runs_of_the_partitions_read_last_are_kept() -> None:
    ahead = ReadAhead()
    keys = [KEY._replace(partition=number) for number in range(RUNS_MAX + 1)]
    for key in keys:
        ahead.keep(key, run_of(1))
    assert ahead.find(keys[0], 0) is None
    assert all(ahead.find(key, 0) for key in keys[1:])


def test_a_partition_can_be_forgotten() -> None:
    ahead = ReadAhead()
    ahead.keep(KEY, run_of(1))
    ahead.forget(KEY)
    assert ahead.find(KEY, 0) is None
