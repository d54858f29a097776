"""The supervisor itself: it calls work again, counts what crashed, and tells why a node stops."""

from __future__ import annotations

import asyncio
import itertools

from sealane.node.supervision import RESTART_SECONDS_MAX, RESTART_SECONDS_MIN, Backoff, Supervisor
from tests.unit.node.supervision.planted import Planted, crash_was_logged


def test_pauses_double_up_to_their_limit_and_begin_anew_after_a_quiet_time() -> None:
    backoff = Backoff()
    pauses = [backoff.next_seconds(moment) for moment in itertools.repeat(0.0, 12)]

    assert pauses[:3] == [RESTART_SECONDS_MIN, 2 * RESTART_SECONDS_MIN, 4 * RESTART_SECONDS_MIN]
    assert pauses[-1] == RESTART_SECONDS_MAX
    assert backoff.next_seconds(2 * RESTART_SECONDS_MAX) == RESTART_SECONDS_MAX
    assert backoff.next_seconds(4 * RESTART_SECONDS_MAX + 0.1) == RESTART_SECONDS_MIN


async def test_work_that_crashes_is_called_again_until_it_returns(caplog) -> None:
    supervisor = Supervisor()
    calls = 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise Planted

    await supervisor.keep("digging", work, topic="default/orders")

    assert calls == 3
    assert supervisor.crashes == {"digging": 2}
    assert "topic=default/orders" in caplog.text
    assert crash_was_logged(caplog, "digging")


async def test_work_that_is_done_once_is_counted_when_it_crashes() -> None:
    supervisor = Supervisor()

    async def work() -> None:
        raise Planted

    supervisor.spawn("digging", work())
    await supervisor.finish()

    assert supervisor.crashes == {"digging": 1}


async def test_whoever_waits_for_the_node_to_stop_is_told_why_once() -> None:
    supervisor = Supervisor()
    waiting = asyncio.create_task(supervisor.failed())
    await asyncio.sleep(0)
    assert not waiting.done()

    first = Planted("first")
    supervisor.stop("commit", first)
    supervisor.stop("reload", Planted("second"))

    assert await waiting is first
    assert supervisor.failed_task == "commit"
    assert supervisor.crashes == {"commit": 1, "reload": 1}
