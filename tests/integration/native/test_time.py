"""Heartbeats, and peers that are slow, silent or only half there. The door's clock is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from sealane.doors.stream_door import DEAF_SECONDS
from sealane.wire import messages as wire
from sealane.wire.connection import FRAME_SECONDS_MAX, HANDSHAKE_SECONDS_MAX, SILENT_HEARTBEATS_MAX
from sealane.wire.frames import frame
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer, batch_of

STEP_SECONDS = 1.0
assert STEP_SECONDS < DEAF_SECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Timed:
    """A running node whose door believes the test's clock."""

    def __init__(self, running: Running, clock: Clock) -> None:
        self.running = running
        self.clock = clock

    async def passes(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_SECONDS)):
            self.clock.now += STEP_SECONDS
            self.running.door.sweep()
            await asyncio.sleep(0)

    async def heard_more(self) -> None:
        """Wait until the door has read what was sent just now."""
        before = self.running.door.received_bytes
        await eventually(lambda: self.running.door.received_bytes > before)


@pytest.fixture
async def timed(no_stray_errors: None) -> AsyncIterator[Timed]:
    clock = Clock()
    async with running_node(clock=clock) as running:
        yield Timed(running, clock)


async def test_who_does_not_say_hello_in_time_is_cut_off(timed: Timed) -> None:
    async with await Peer.connect(timed.running.address) as silent, await Peer.connect(timed.running.address) as slow:
        slow.send(frame(msgspec.msgpack.encode(wire.Hello([1], "x")))[0][:5])
        await eventually(lambda: timed.running.door.received_bytes == 5)
        await timed.passes(HANDSHAKE_SECONDS_MAX)
        assert timed.running.door.connections == 2
        await timed.passes(1)
        for peer in (silent, slow):
            (goodbye,) = await peer.gone()
            assert goodbye.code == "too-slow"


async def test_a_frame_that_trickles_in_is_cut_off(timed: Timed) -> None:
    async with await Peer.enter(timed.running.address) as peer:
        whole = b"".join(frame(b"x" * 100, [batch_of(b"y" * 100_000)]))
        for second in range(round(FRAME_SECONDS_MAX)):
            peer.send(whole[second : second + 1])
            await timed.heard_more()
            await timed.passes(1)
        assert timed.running.door.connections == 1
        await timed.passes(1)
        assert (await peer.gone())[-1].code == "too-slow"


async def test_a_peer_that_says_nothing_is_asked_and_then_taken_for_gone(timed: Timed) -> None:
    async with await Peer.enter(timed.running.address) as peer:
        await timed.passes(14)
        assert peer.heard == []
        await timed.passes(2)
        await peer.hear(wire.Ping)
        await timed.passes(15 * SILENT_HEARTBEATS_MAX - 16)
        assert timed.running.door.connections == 1
        await timed.passes(1)
        await eventually(lambda: timed.running.door.connections == 0)


async def test_a_peer_that_answers_heartbeats_stays_for_ever(timed: Timed) -> None:
    async with await Peer.enter(timed.running.address) as peer:
        for _ in range(20):
            await timed.passes(16)
            await peer.hear(wire.Ping)
            peer.say(wire.Pong())
            await timed.heard_more()
        peer.say(wire.Ping())
        await peer.hear(wire.Pong)
        assert isinstance(await peer.publish("orders", b"x"), wire.Published)


async def test_what_a_half_open_connection_held_goes_to_others(timed: Timed) -> None:
    async with await Peer.enter(timed.running.address) as lost, await Peer.enter(timed.running.address) as other:
        await other.publish("orders", b"a")
        await lost.attach("orders", credit=10)
        await lost.hear(wire.Deliver)
        await other.attach("orders", credit=10)
        for _ in range(50):
            other.say(wire.Ping())
            await other.hear(wire.Pong)
            await timed.passes(1)
        _, body = await other.hear_with_body(wire.Deliver)
        assert len(body)


async def test_a_node_that_was_stuck_itself_blames_nobody(timed: Timed) -> None:
    async with await Peer.enter(timed.running.address) as peer:
        timed.clock.now += 3_600
        timed.running.door.sweep()
        await peer.hear(wire.Ping)
        assert isinstance(await peer.publish("orders", b"x"), wire.Published)


@pytest.mark.parametrize(
    ("wanted", "given"), [(5.0, 5.0), (0.001, 1.0), (-3.0, 1.0), (99.0, 15.0), (float("nan"), 15.0)]
)
async def test_a_client_may_ask_for_shorter_heartbeats(running: Running, wanted: float, given: float) -> None:
    async with await Peer.connect(running.address) as peer:
        peer.say(wire.Hello([1], "x", heartbeat_seconds=wanted))
        assert (await peer.hear(wire.Welcome)).heartbeat_seconds == given
