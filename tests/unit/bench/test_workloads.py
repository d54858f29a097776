"""What workloads compute from what they have seen."""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import pairwise
from subprocess import PIPE, Popen

import pytest

from bench import resident
from bench.fan_out import spread
from bench.memory import trend
from bench.pacing import at_a_pace, at_a_pace_blocking


async def test_a_pace_is_kept_by_the_kernels_clock_and_leaves_the_loop_free():
    passes = 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0.005)
            passes += 1

    counting = asyncio.create_task(count_passes())
    begun = time.monotonic()
    moments = [(number, time.monotonic() - begun) async for number in at_a_pace(50, per_second=500)]
    counting.cancel()
    assert [number for number, _ in moments] == list(range(50))
    assert all(moment >= number / 500 for number, moment in moments), "none comes before its moment"
    assert passes > 0


async def test_moments_that_were_missed_are_made_good_at_once():
    moments = []
    async for number in at_a_pace(50, per_second=500):
        if number == 0:
            time.sleep(0.05)  # noqa: ASYNC251 - the loop stands still, as when a process gets no processor
        moments.append(time.monotonic())
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert sum(gap < 0.001 for gap in gaps[1:]) >= 20, "25 moments have passed meanwhile"


async def test_a_pace_that_no_clock_has_is_refused():
    with pytest.raises(ValueError, match="a second"):
        await anext(at_a_pace(1, per_second=10**12))


def test_a_blocking_pace_is_the_same():
    begun = time.monotonic()
    moments = [(number, time.monotonic() - begun) for number in at_a_pace_blocking(20, per_second=500)]
    assert [number for number, _ in moments] == list(range(20))
    assert all(moment >= number / 500 for number, moment in moments)


@pytest.mark.parametrize(
    ("amount", "over", "shares"), [(10, 4, [3, 3, 2, 2]), (10, 10, [1] * 10), (3, 8, [1, 1, 1]), (7, 1, [7])]
)
def test_a_crowd_is_spread_evenly(amount, over, shares):
    assert spread(amount, over) == shares


def test_memory_that_settles_is_flat_and_memory_that_climbs_is_not():
    settles = [(float(second), 100.0 + min(second, 40) + second % 2) for second in range(100)]
    climbs = [(float(second), 100.0 + second * 0.2) for second in range(100)]
    assert trend(settles).flat
    assert not trend(climbs).flat
    assert trend(climbs).mb_per_minute == pytest.approx(12.0)
    assert trend(climbs).growth_mb == pytest.approx(8.0, abs=0.5)


def test_memory_is_what_the_kernel_says():
    # A process of its own: one that has run other tests may have as much to spare, and takes none from the kernel.
    takes_memory = "print(flush=True); input(); held = bytearray(b'1') * 32_000_000; print(flush=True); input()"
    with Popen([sys.executable, "-c", takes_memory], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = resident.of(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        after = resident.of(process.pid)
        process.kill()
    assert after.resident_mb - before.resident_mb > 25
    assert after.private_mb - before.private_mb > 25
