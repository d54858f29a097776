"""A client that is slow, silent or greedy harms nobody else."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from pathlib import Path

import pytest

from sealane.doors.cipher import conversation
from sealane.doors.cipher.door import SHORT_LINE_BYTES
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.node.surroundings import wall_clock_us
from sealane.wire.cipher.commands import USAGES
from tests.cipher_messages import encrypted, written
from tests.cipher_node import CipherNode, cipher_node, line_client
from tests.integration.native.conftest import eventually, no_stray_errors
from tests.integration.native.slow_disk import SlowFiles

__all__ = ["no_stray_errors"]
pytestmark = pytest.mark.usefixtures("no_stray_errors")

MiB = 1 << 20


async def local_engine(disk: SlowFiles) -> LocalEngine:
    settings = StorageSettings(commit="thread", compaction=False)
    return await LocalEngine.start(disk, settings=settings, clock=wall_clock_us, entropy=os.urandom)


def deaf_socket(node: CipherNode) -> socket.socket:
    """One that has little room for what it does not read."""
    host, _, port = node.address.rpartition(":")
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    found.connect((host, int(port)))
    found.setblocking(False)
    return found


def held_messages(node: CipherNode, topic: str) -> int:
    [owner] = node.node.topic(topic).owners
    return len(owner.core.subscription("cipher").leases.outstanding)


async def test_a_consumer_that_does_not_read_is_given_no_more_and_others_go_on() -> None:
    large = [encrypted(ciphertext_bytes=256 << 10) for _ in range(64)]
    async with cipher_node() as node, line_client(node.address) as client:
        await client.make_queue("q")
        with deaf_socket(node) as deaf:
            await asyncio.get_running_loop().sock_sendall(deaf, b"consume q\n")
            await eventually(lambda: "default/q" in node.node.topics and node.door.connections == 2)
            for message in large:
                await client.publish("q", message)
            before = held_messages(node, "default/q")
            assert before < 40
            await client.make_queue("other")
            await client.publish("other")
            assert (await client.ask("fetch other")).startswith("Message: ")
            assert held_messages(node, "default/q") == before
        assert await client.ask("consume q") == "Consuming q"
        for message in large:  # What the other one held comes first, since it is gone.
            assert await client.line() == f"Message: {message['message_id']} {written(message)}"


async def test_whoever_takes_nothing_for_too_long_is_cut_off_and_what_they_held_comes_back() -> None:
    async with cipher_node(send_seconds_max=0.3) as node, line_client(node.address) as client:
        await client.make_queue("q")
        messages = [await client.publish("q", encrypted(ciphertext_bytes=512 << 10)) for _ in range(20)]
        with deaf_socket(node) as deaf:
            await asyncio.get_running_loop().sock_sendall(deaf, b"consume q\n")
            await eventually(lambda: held_messages(node, "default/q") > 0)
            await eventually(lambda: node.door.connections == 1)
            assert held_messages(node, "default/q") == 0
        line = await client.ask("fetch q")
        assert line == f"Message: {messages[0]['message_id']} {written(messages[0])}"


async def test_whoever_asks_and_does_not_listen_is_not_read_from() -> None:
    async with cipher_node() as node, line_client(node.address) as client:
        with deaf_socket(node) as deaf:
            assert not await takes_all(deaf, 400 * MiB)
            assert await client.ask("declare_queue q") == "Queue declared"
            assert node.door.budget.in_flight_bytes < 2 * node.door.settings.in_flight_bytes_max


async def takes_all(deaf: socket.socket, count: int) -> bool:
    """Whether a node reads so many bytes of someone who does not read its answers."""
    for _ in range(0, count, 100_000):
        try:
            async with asyncio.timeout(1):
                await asyncio.get_running_loop().sock_sendall(deaf, b"x\n" * 50_000)
        except TimeoutError:
            return False
    return True


async def test_a_command_that_waits_for_the_disk_stops_neither_pushes_nor_others(tmp_path: Path) -> None:
    disk = SlowFiles(tmp_path)
    async with (
        cipher_node(engine=await local_engine(disk), lease_seconds=0.2) as node,
        line_client(node.address) as client,
        line_client(node.address) as other,
    ):
        await client.make_queue("q")
        message = await client.publish("q")
        pushed = f"Message: {message['message_id']} {written(message)}"
        assert [await client.ask("consume q"), await client.line()] == ["Consuming q", pushed]
        disk.goes_on.clear()
        client.send(f"publish q-exchange key {written(encrypted('late'))}")
        await eventually(lambda: node.door.budget.in_flight_bytes > 0)
        assert [await client.line() for _ in range(3)] == [pushed] * 3
        assert (await other.ask("nonsense")).startswith("Error: command")
        disk.goes_on.set()
        while (line := await client.line()) == pushed:
            pass
        assert line == "ACK late"


async def test_long_lines_without_an_end_have_a_bound_for_all_of_them_together() -> None:
    async with (
        cipher_node(in_flight_bytes_total_max=4 * MiB) as node,
        line_client(node.address) as one,
        line_client(node.address) as two,
        line_client(node.address) as three,
    ):
        for client in (one, two):
            assert await client.ask("declare_queue q") == "Queue declared"
            client.writer.write(b"x" * (3 * MiB))
            await client.writer.drain()
        await eventually(lambda: node.door.begun_bytes == 3 * MiB)
        three.writer.write(b"declare_queue " + b" " * (SHORT_LINE_BYTES // 2) + b"q\n")
        assert await three.line() == "Queue declared"
        for client in (one, two):
            client.writer.write(b"\n")
        replies = sorted([await one.line(), await two.line()])
        assert replies[0].startswith("Error: command: there is no 'xxxx")
        assert replies[1].startswith("Error: too many long lines are on their way")
        assert node.door.begun_bytes == 0
        assert [await one.ask("declare_queue q"), await two.ask("declare_queue q")] == ["Queue declared"] * 2


async def test_a_line_that_does_not_come_to_its_end_in_time_ends_the_connection() -> None:
    async with cipher_node(receive_seconds_max=0.2) as node, line_client(node.address) as client:
        assert await client.ask("declare_queue q") == "Queue declared"
        client.writer.write(b"declare_que")
        assert "has not come to its end within doors.cipher.receive_seconds_max" in await client.rest()


async def test_one_connection_too_many_is_told_so() -> None:
    async with cipher_node(connections_max=1) as node, line_client(node.address) as client:
        assert await client.ask("declare_queue q") == "Queue declared"
        async with line_client(node.address) as second:
            assert (await second.rest()).startswith("Error: ")
        assert await client.ask("declare_queue q") == "Queue declared"


async def test_more_commands_than_go_together_are_carried_out_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "RUN_COMMANDS_MAX", 7)
    messages = [encrypted() for _ in range(30)]
    async with cipher_node() as node, line_client(node.address) as client:
        await client.make_queue("q")
        client.send(*(f"publish q-exchange key {written(message)}" for message in messages))
        assert [await client.line() for _ in messages] == [f"ACK {message['message_id']}" for message in messages]
        client.send("consume q")
        assert await client.line() == "Consuming q"
        for message in messages:
            assert await client.line() == f"Message: {message['message_id']} {written(message)}"
        client.send(*(f"ack {message['message_id']}" for message in messages))
        assert [await client.line() for _ in messages] == [
            f"ACK_CONFIRMED {message['message_id']}" for message in messages
        ]


async def test_garbage_is_answered_with_errors_and_harms_nobody() -> None:
    chance = random.Random(5)
    others = [b"q", b"x", b"key", b"{", b"[", b'{"message_id":', b"\xff", b"\r", b"\x00"]
    words = [*(name.encode() for name in USAGES), *others]
    async with cipher_node() as node, line_client(node.address) as good:
        for _ in range(30):
            async with line_client(node.address) as bad:
                lines = [b" ".join(chance.choices(words, k=chance.randint(0, 6))) for _ in range(50)]
                bad.writer.write(b"\n".join([*lines, chance.randbytes(200), b"declare_queue end"]))
                bad.writer.write_eof()
                replies = (await bad.rest()).splitlines()
                assert replies
                assert not any("failed unexpectedly" in reply for reply in replies)
        assert await good.ask("declare_queue q") == "Queue declared"


async def test_whoever_has_said_more_than_is_taken_at_once_and_hung_up_amid_a_line_hears_all_answers() -> None:
    """The last answer makes the door pause and go on, and so it hears twice that nothing more comes."""
    async with cipher_node(in_flight_bytes_max=10_000) as node, line_client(node.address) as client:
        client.send(*(f"declare_queue q{number}" for number in range(9)))
        client.writer.write(b"declare_queue q9")
        client.writer.write_eof()
        *queues, last = (await client.rest()).splitlines()
        assert queues == ["Queue declared"] * 9
        assert last == "Error: line: the last one has no end, a line feed, and was not carried out"
