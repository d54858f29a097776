"""So many a second, evenly: what a producer that publishes one message each millisecond counts by.

An event loop's timers tick in whole milliseconds: asked to wake up each millisecond they are a tenth too late, and each
tenth message leaves together with the next, which then waits for it. The kernel's timer has no such grain.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator

CLOCK_MONOTONIC = 1
SECOND_NS = 1_000_000_000


async def at_a_pace(count: int, per_second: int) -> AsyncIterator[int]:
    """The numbers from 0, each at its moment; a moment that was missed is made good at once, and none moves the others.

    The event loop is free meanwhile, and no processor time is burnt.
    """
    loop = asyncio.get_running_loop()
    if not 0 < per_second <= SECOND_NS:
        raise ValueError(f"{per_second:,} a second is no pace that the clock can keep")
    timer = _ticking(SECOND_NS // per_second)
    ticked = asyncio.Event()
    due = 0

    def tick() -> None:
        nonlocal due
        due += int.from_bytes(os.read(timer, 8), sys.byteorder)
        ticked.set()

    loop.add_reader(timer, tick)
    try:
        for number in range(count):
            while number >= due:
                ticked.clear()
                await ticked.wait()
            yield number
    finally:
        loop.remove_reader(timer)
        os.close(timer)


def at_a_pace_blocking(count: int, per_second: int) -> Iterator[int]:
    """The same for a client that blocks: the calling thread sleeps from moment to moment."""
    begun = time.monotonic()
    for number in range(count):
        if (wait := begun + number / per_second - time.monotonic()) > 0:
            time.sleep(wait)
        yield number


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("first", _TimeSpec))


def _ticking(interval_ns: int) -> int:
    """A descriptor that becomes readable at each tick, and reads as how many there were (`man timerfd_create`).

    Python has this call of its own only from 3.13 on.
    """
    library = ctypes.CDLL(None, use_errno=True)
    timer = int(library.timerfd_create(CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
    if timer < 0:
        raise OSError(ctypes.get_errno(), "the kernel gave no timer")
    interval = _TimeSpec(*divmod(interval_ns, SECOND_NS))
    if library.timerfd_settime(timer, 0, ctypes.byref(_TimerSpec(interval, interval)), None):
        problem = ctypes.get_errno()
        os.close(timer)
        raise OSError(problem, f"the kernel refused a timer of {interval_ns:,} ns")
    return timer
