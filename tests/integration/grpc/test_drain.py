"""How the door opens and closes: a taken port is named, what was begun is answered, streams are told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sealane.doors.grpc.door import GrpcDoor
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.errors import PortTaken
from sealane.node.gate import Gate, everyone_is_admin
from tests.grpc_node import GrpcNode, channel, client, grpc_node
from tests.integration.grpc.conftest import DEADLINE_SECONDS, payloads, pull, refusal, sent, until_refused, wish
from tests.integration.grpc.test_sending import slow_engine
from tests.integration.native.conftest import eventually
from tests.integration.native.slow_disk import SlowFiles


def door_at(running: GrpcNode, port: int) -> GrpcDoor:
    gate = Gate(running.node, everyone_is_admin)
    return GrpcDoor(gate, GrpcDoorSettings(port=port), node_id="other", problems=list)


async def test_a_taken_port_is_named_with_its_setting(running: GrpcNode) -> None:
    other = door_at(running, int(running.address.rpartition(":")[2]))
    with pytest.raises(PortTaken, match=r"doors\.grpc\.port") as caught:
        await other.start()
    await other.close()
    assert caught.value.address == running.address


async def test_a_door_can_be_opened_again_where_one_was_closed(running: GrpcNode) -> None:
    port = int(running.address.rpartition(":")[2])
    async with client(running.address) as stub:
        await stub.SendMessage(sent(b"1"))
    await running.door.close()
    again = door_at(running, port)
    await again.start()
    async with client(again.address) as stub:
        await stub.SendMessage(sent(b"2"))
    await again.close()


async def test_closing_leaves_nothing_behind_and_may_be_repeated(running: GrpcNode) -> None:
    directory = running.door._directory
    assert directory is not None
    assert oct(os.stat(directory).st_mode & 0o777) == "0o700"
    async with client(running.address) as stub:
        await stub.SendMessage(sent(b"1"))
        assert running.door.connections == 1
        await running.door.close()
        await running.door.close()
    assert not directory.exists()
    assert running.door.connections == 0


@pytest.mark.parametrize("follow", [True, False])
async def test_a_stream_hears_that_the_node_is_about_to_stop(running: GrpcNode, stub: Any, follow: bool) -> None:
    call = stub.PullMessages(wish(wait=60, follow=follow))
    await eventually(lambda: len(running.door._stays) == 1)
    await asyncio.wait_for(running.door.drain(DEADLINE_SECONDS), DEADLINE_SECONDS / 2)
    error = await refusal(call)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert error.details().startswith("the node is about to stop")


async def test_whoever_watches_the_health_is_told_too(running: GrpcNode) -> None:
    async with channel(running.address) as opened:
        watch = health_pb2_grpc.HealthStub(opened).Watch(health_pb2.HealthCheckRequest())
        await watch.read()
        await asyncio.wait_for(running.door.drain(DEADLINE_SECONDS), DEADLINE_SECONDS / 2)
        assert await watch.code() is grpc.StatusCode.UNAVAILABLE


async def test_what_was_begun_is_answered_and_what_comes_now_is_refused(tmp_path: Path, no_stray_errors: None) -> None:
    disk = SlowFiles(tmp_path)
    async with grpc_node(engine=await slow_engine(disk)) as running, client(running.address) as stub:
        await stub.SendMessage(sent(b"the topic is there"))
        disk.goes_on.clear()
        one = asyncio.ensure_future(stub.SendMessage(sent(b"1")))
        over = asyncio.Event()
        many = stub.SendMessages(_slowly([sent(b"2"), sent(b"3")], over))
        await eventually(lambda: running.door.in_flight_bytes > 2_048)
        draining = asyncio.create_task(running.door.drain(DEADLINE_SECONDS))
        await asyncio.sleep(0)
        assert (await refusal(stub.SendMessage(sent(b"4")))).code() is grpc.StatusCode.UNAVAILABLE
        assert not draining.done()
        disk.goes_on.set()
        await one
        answers, error = await until_refused(many)
        assert len(answers) == 2, "all that has come was answered"
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        over.set()
        await draining
    async with grpc_node(tmp_path) as running, client(running.address) as stub:
        assert sorted(payloads(await pull(stub)))[:3] == [b"1", b"2", b"3"]


async def _slowly(requests: list[Any], over: asyncio.Event) -> AsyncIterator[Any]:
    """A client that has no more to say for now, and is not done."""
    for request in requests:
        yield request
    await over.wait()


async def test_who_waits_longer_than_the_drain_may_take_is_cut_off(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    async with grpc_node(engine=await slow_engine(disk)) as running, client(running.address) as stub:
        await stub.SendMessage(sent(b"the topic is there"))
        disk.goes_on.clear()
        one = asyncio.ensure_future(stub.SendMessage(sent(b"1")))
        await eventually(lambda: running.door.in_flight_bytes > 0)
        await asyncio.wait_for(running.door.drain(0.2), DEADLINE_SECONDS)
        assert not one.done()
        await running.door.close()
        assert (await refusal(one)).code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        disk.goes_on.set()
