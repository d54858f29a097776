"""How a node leaves: nothing that was begun is lost, nothing new is begun, and no message is blamed for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.errors import PortTaken
from sealane.node.surroundings import wall_clock_us
from sealane.wire import messages as wire
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import Peer, batch_of, payloads_of
from tests.integration.native.slow_disk import SlowFiles


async def local_engine(files: DiskFiles) -> LocalEngine:
    settings = StorageSettings(commit="thread", compaction=False)
    return await LocalEngine.start(files, settings=settings, clock=wall_clock_us, entropy=os.urandom)


async def test_a_draining_node_tells_everyone_and_lets_nobody_in(running: Running) -> None:
    async with await Peer.enter(running.address) as one, await Peer.connect(running.address) as greeting:
        await eventually(lambda: running.door.connections == 2)
        draining = asyncio.create_task(running.door.drain(30))
        goodbye = await one.hear(wire.Goodbye)
        assert goodbye.code == "draining"
        assert (await greeting.gone())[-1].code == "closing"
        with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the kernel likes
            await Peer.connect(running.address)
        await one.close()
        await draining
        assert running.door.connections == 0


async def test_what_was_asked_before_is_done_and_what_is_asked_now_is_refused(
    tmp_path: Path, no_stray_errors: None
) -> None:
    disk = SlowFiles(tmp_path)
    async with running_node(await local_engine(disk)) as running, await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"first")
        disk.goes_on.clear()
        call = peer.wire.new_call()
        peer.say(wire.Publish(call, "orders"), batch_of(b"second"))
        await eventually(lambda: running.door.in_flight_bytes > 0)
        draining = asyncio.create_task(running.door.drain(30))
        await peer.hear(wire.Goodbye)

        refused = [await peer.publish("orders", b"third"), await peer.ask(wire.ListTopics), await peer.attach("orders")]
        assert {answer.code for answer in refused} == {"unavailable"}
        assert not draining.done()
        disk.goes_on.set()
        assert isinstance(await peer.answer(call), wire.Published)
        assert (await peer.gone())[-1].code == "closing"
        await draining


async def test_consumers_may_answer_what_they_hold_and_get_no_more(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", *[b"x"] * 10)
        await peer.attach("orders", credit=4)
        deliver = await peer.hear(wire.Deliver)
        draining = asyncio.create_task(running.door.drain(30))
        await peer.hear(wire.Goodbye)
        peer.say(wire.Credit(1, 100))
        peer.say(wire.Release(1, [wire.LeaseRuns(0, deliver.lease, [2, 4])]))
        assert isinstance(await peer.ask(wire.Ack, 1, wire.LeaseRuns(0, deliver.lease, [0, 1])), wire.Done)
        transacted = await peer.ask(
            wire.Transact, "t", [], [(f"{id(peer)}-1", wire.LeaseRuns(0, deliver.lease, [1, 2]))]
        )
        assert transacted is True
        assert not any(isinstance(message, wire.Deliver) for message, _ in peer.heard)
        assert (await peer.gone())[-1].code == "closing"
        await draining
        subscription = running.node.topics["default/orders"].owners[0].core.subscriptions["workers"]
        assert subscription.settled.floor == 2
        assert not subscription.leases.by_id


async def test_a_client_that_does_not_finish_is_closed_after_all(no_stray_errors: None) -> None:
    async with running_node() as running, await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"x")
        await peer.attach("orders", credit=4)
        await peer.hear(wire.Deliver)
        await running.door.drain(0.2)
        assert (await peer.gone())[-1].code == "closing"
        await running.door.close()
        attempts = running.node.topics["default/orders"].owners[0].core.subscriptions["workers"].attempts
        assert not attempts.levels, "it is the node that stops, and not the consumer that failed"


@pytest.mark.parametrize("drained", [True, False])
async def test_a_restart_of_the_node_counts_no_attempt(tmp_path: Path, no_stray_errors: None, drained: bool) -> None:
    for start in range(4):
        async with running_node(await local_engine(DiskFiles(tmp_path))) as running:
            peer = await Peer.enter(running.address)
            if start == 0:
                await peer.publish("orders", b"a", b"b")
            await peer.attach("orders", credit=10)
            deliver, body = await peer.hear_with_body(wire.Deliver)
            assert payloads_of(deliver, body) == [b"a", b"b"]
            assert deliver.attempts == []
            if drained:
                await running.door.drain(0.2)
        await peer.close()


async def test_a_door_may_be_closed_twice_and_while_clients_ask(running: Running) -> None:
    peers = [await Peer.enter(running.address) for _ in range(20)]
    for peer in peers:
        for _ in range(20):
            peer.say(wire.Publish(peer.wire.new_call(), "orders"), batch_of(b"x"))
            peer.say(wire.DescribeTopic(peer.wire.new_call(), "orders"))
        await peer.writer.drain()
    await running.door.close()
    await running.door.close()
    for peer in peers:
        await peer.gone()
        await peer.close()
    assert running.door.connections == 0


async def test_a_taken_port_is_an_error_that_names_port_and_setting(running: Running) -> None:
    port = int(running.address.rsplit(":", 1)[1])
    with pytest.raises(PortTaken) as caught:
        async with running_node(port=port):
            pass
    assert (caught.value.address, caught.value.setting) == (running.address, "doors.native.port")
