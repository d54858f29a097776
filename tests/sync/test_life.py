"""Opening, closing, interrupting, forking, and being forgotten."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import sealane
from tests.sync.waiting import DEADLINE_SECONDS, described, eventually


def threads_of_lanes() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sealane"]


def script(text: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(text), *args],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def test_closing_ends_the_thread_and_twice_is_once() -> None:
    lane = sealane.embedded_sync().open()
    assert len(threads_of_lanes()) == 1
    lane.close()
    lane.close()
    assert threads_of_lanes() == []
    with pytest.raises(sealane.Closed, match="closed"):
        lane.publish("orders", b"late")
    with pytest.raises(sealane.Closed):
        lane.open()


def test_a_lane_that_is_not_open_says_so() -> None:
    lane = sealane.embedded_sync()
    with pytest.raises(sealane.Closed, match="with"):
        lane.topics()
    lane.close()


def test_what_opening_raises_is_raised_to_the_caller(tmp_path: Path) -> None:
    with sealane.embedded_sync(tmp_path / "data"):
        with pytest.raises(sealane.DataDirectoryInUse):
            sealane.embedded_sync(tmp_path / "data").open()
        assert len(threads_of_lanes()) == 1
    assert threads_of_lanes() == []


def test_closing_flushes_acks_and_ends_waiting_consumers(tmp_path: Path) -> None:
    ended = threading.Event()
    with sealane.embedded_sync(tmp_path / "data") as lane:
        lane.publish_many("orders", [b"x"] * 10)

        def consume() -> None:
            with pytest.raises(sealane.Closed):
                for message in lane.consume("orders", "billing"):
                    message.ack()
            ended.set()

        thread = threading.Thread(target=consume)
        thread.start()
        eventually(lambda: bool(lane.describe_topic("orders").subscriptions))
        eventually(lambda: described(lane, "orders", "billing").depth == 0)
    assert ended.wait(DEADLINE_SECONDS)
    thread.join()
    with sealane.embedded_sync(tmp_path / "data") as lane:
        assert described(lane, "orders", "billing").depth == 0


def test_messages_and_producers_of_a_closed_lane_refuse() -> None:
    with sealane.embedded_sync() as lane:
        lane.publish_many("orders", [b"1", b"2"])
        message = next(iter(lane.consume("orders", "billing")))
        producer = lane.producer("orders")
    for call in (message.ack, message.nack, producer.flush):
        with pytest.raises(sealane.Closed):
            call()
    with pytest.raises(sealane.Closed):
        producer.send(b"late")
    with pytest.raises(sealane.Closed):
        message.extend(5)


def test_calls_under_way_when_the_lane_closes_are_told() -> None:
    lane = sealane.embedded_sync().open()
    told: list[BaseException] = []

    def redrive_for_long() -> None:
        try:
            lane.redrive("orders", "billing", rate=0.001)
        except sealane.SealaneError as error:
            told.append(error)

    lane.publish_many("orders", [b"1", b"2"])
    for number, message in enumerate(
        lane.consume("orders", "billing", retry=sealane.Retry("fixed", 0, attempts_max=1))
    ):
        message.nack(confirm=True)
        if number == 1:
            break
    eventually(lambda: "default/orders.billing.dead" in lane.topics())
    thread = threading.Thread(target=redrive_for_long)
    thread.start()
    lane.close()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()
    assert told


async def test_a_running_event_loop_is_not_blocked() -> None:
    with pytest.raises(sealane.WouldBlock, match="async with"):
        sealane.embedded_sync().open()
    lane = await asyncio.to_thread(sealane.embedded_sync().open)
    with pytest.raises(sealane.WouldBlock, match="to_thread"):
        lane.publish("orders", b"x")
    await asyncio.to_thread(lane.publish, "orders", b"x")
    await asyncio.to_thread(lane.close)


def test_a_callback_that_calls_its_own_lane_is_refused_rather_than_stuck() -> None:
    with sealane.embedded_sync() as lane:
        lane.publish("orders", b"hard")
        for message in lane.consume("orders", "billing", retry=sealane.Retry("fixed", 0, attempts_max=1)):
            message.nack(confirm=True)
            break
        eventually(lambda: "default/orders.billing.dead" in lane.topics())
        refused: list[BaseException] = []

        def progress(count: int) -> None:
            with pytest.raises(sealane.WouldBlock) as caught:
                lane.topics()
            refused.append(caught.value)

        eventually(lambda: lane.redrive("orders", "billing", progress=progress).messages == 1)
        assert refused


def test_an_interrupted_caller_leaves_everything_in_order() -> None:
    with sealane.embedded_sync() as lane:
        lane.publish("orders", b"1")
        main = threading.get_ident()

        def interrupt() -> None:
            # The main thread has taken the message and waits for another one, that never comes.
            eventually(lambda: described(lane, "orders", "billing").depth == 0)
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        with pytest.raises(KeyboardInterrupt):
            for message in lane.consume("orders", "billing"):
                message.ack(confirm=True)
                thread.start()
        thread.join()
        eventually(lambda: described(lane, "orders", "billing").consumers == 0)
        lane.publish("orders", b"2")
        assert next(iter(lane.consume("orders", "billing"))).payload == b"2"


def test_interrupting_the_opening_closes_what_is_half_open() -> None:
    closed = threading.Event()
    opening = threading.Event()

    @asynccontextmanager
    async def never() -> AsyncIterator[sealane.Lane]:
        try:
            opening.set()
            await asyncio.Event().wait()
            yield None  # type: ignore[misc]
        finally:
            closed.set()

    main = threading.get_ident()

    def interrupt() -> None:
        assert opening.wait(DEADLINE_SECONDS)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sealane.SyncLane(never).open()
    thread.join()
    assert closed.is_set()
    assert threads_of_lanes() == []


def test_a_block_that_fails_closes_its_lane_as_failed() -> None:
    reasons: list[object] = []

    class Watched:
        def __init__(self) -> None:
            self.opened = sealane.embedded()

        async def __aenter__(self) -> sealane.Lane:
            return await self.opened.__aenter__()

        async def __aexit__(self, kind: object, error: object, trace: object) -> None:
            reasons.append(kind)
            await self.opened.__aexit__(None, None, None)

    with pytest.raises(ValueError, match="mine"), sealane.SyncLane(Watched):
        raise ValueError("mine")
    with sealane.SyncLane(Watched):
        pass
    assert reasons == [ValueError, None]


def test_a_lane_that_is_dropped_open_is_closed_and_told_of() -> None:
    lane = sealane.embedded_sync().open()
    with pytest.warns(ResourceWarning, match="unclosed"):
        del lane
    eventually(lambda: threads_of_lanes() == [])


def test_a_forgotten_lane_does_not_keep_the_interpreter(tmp_path: Path) -> None:
    done = script(
        """
        import sys, sealane
        lane = sealane.embedded_sync(sys.argv[1]).open()
        lane.publish("orders", b"kept")
        loop = iter(lane.consume("orders", "billing"))
        next(loop).ack()
        print("end of the script")
        """,
        str(tmp_path / "data"),
    )
    assert (done.returncode, done.stdout) == (0, "end of the script\n"), done.stderr
    assert "Traceback" not in done.stderr
    with sealane.embedded_sync(tmp_path / "data") as lane:
        # What was acknowledged without waiting had its chance to be sent.
        assert described(lane, "orders", "billing").depth == 0


def test_a_lane_that_cannot_close_does_not_keep_the_interpreter() -> None:
    begun = time.monotonic()
    done = script(
        """
        import asyncio, contextlib, sealane

        @contextlib.asynccontextmanager
        async def stuck():
            async with sealane.embedded() as lane:
                yield lane
                await asyncio.Event().wait()

        lane = sealane.SyncLane(stuck).open()
        print(lane.topics())
        """
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert time.monotonic() - begun < DEADLINE_SECONDS


def test_a_child_of_a_fork_is_told_to_open_its_own() -> None:
    done = script(
        """
        import os, sys, warnings, sealane
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
        with sealane.embedded_sync() as lane:
            lane.publish_many("orders", [b"1", b"2"])
            producer = lane.producer("orders")
            loop = iter(lane.consume("orders", "billing"))
            message = next(loop)
            child = os.fork()
            if child == 0:
                for call in (lane.topics, message.ack, lambda: producer.send(b"3"), lambda: next(loop)):
                    try:
                        call()
                    except sealane.Closed as error:
                        assert "fork" in str(error)
                        continue
                    os._exit(1)
                lane.close()
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            message.ack(confirm=True)
            assert next(loop).payload == b"2"
            print("the parent goes on")
        """
    )
    assert (done.returncode, done.stdout) == (0, "the parent goes on\n"), done.stderr
