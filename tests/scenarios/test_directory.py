"""A directory: one process at a time, sealed with its own key, kept for as long as its topics say."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

import sealane
from sealane.engine.local import StorageSettings
from sealane.node import NodeSettings, TopicSettings
from tests.scenarios.broker import Broker, eventually, take, take_payloads

HOLD = """
import asyncio, sys, sealane

async def main():
    async with sealane.embedded(sys.argv[1]) as lane:
        await lane.publish("orders", b"theirs")
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_second_process_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(tmp_path / "data"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"ready\n"
        with pytest.raises(sealane.DataDirectoryInUse, match=f"process {process.pid}") as refused:
            async with sealane.embedded(tmp_path / "data"):
                pass
        assert refused.value.pid == process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()
    async with sealane.embedded(tmp_path / "data") as lane:
        assert await take_payloads(lane.consume("orders", "s"), 1) == [b"theirs"]


async def test_the_same_process_cannot_open_it_twice_either(directory: Broker) -> None:
    with pytest.raises(sealane.DataDirectoryInUse) as refused:
        async with sealane.embedded(directory.path):
            pass
    assert refused.value.pid == os.getpid()
    await directory.lane.publish("orders", b"still fine")


# --- keys -------------------------------------------------------------------------------------------------------------


def key_file(broker: Broker) -> Path:
    assert broker.path is not None
    return broker.path / "master.key"


async def test_the_key_is_made_on_first_use_and_is_its_owners_alone(directory: Broker) -> None:
    assert stat.S_IMODE(key_file(directory).stat().st_mode) == 0o600


async def test_without_its_key_a_directory_is_not_served(directory: Broker) -> None:
    await directory.lane.publish("orders", b"secret")
    await directory.stop()
    key = key_file(directory).read_bytes()
    key_file(directory).unlink()

    with pytest.raises(sealane.KeyUnavailable, match="missing"):
        await directory.start()
    assert not key_file(directory).exists(), "a new key would hide that the old one is lost"

    key_file(directory).write_bytes(key)
    lane = await directory.start()
    assert await take_payloads(lane.consume("orders", "s"), 1) == [b"secret"]


async def test_with_another_key_a_directory_is_not_served(directory: Broker, tmp_path: Path) -> None:
    await directory.lane.publish("orders", b"secret")
    await directory.stop()
    async with sealane.embedded(tmp_path / "other"):
        pass
    key_file(directory).write_bytes((tmp_path / "other" / "master.key").read_bytes())
    with pytest.raises(sealane.KeyUnavailable, match="not the key that sealed"):
        await directory.start()


@pytest.mark.parametrize("text", [b"", b"garbage", b"sealane master key\nkey 00\nsum 00\n"])
async def test_with_a_damaged_key_a_directory_is_not_served(directory: Broker, text: bytes) -> None:
    await directory.stop()
    key_file(directory).write_bytes(text)
    with pytest.raises(sealane.KeyUnavailable, match="backup"):
        await directory.start()


MARKER = b"marker-that-must-not-be-found"


def found_on_disk(path: Path) -> bool:
    return any(MARKER in file.read_bytes() for file in path.rglob("*") if file.is_file())


async def test_a_sealed_topic_shows_nothing_on_disk_and_an_unsealed_one_does(directory: Broker) -> None:
    assert directory.path is not None
    text = MARKER.decode()
    await directory.lane.publish("orders", MARKER, key=MARKER, headers={text: text})
    [message] = await take(directory.lane.consume("orders", "s"), 1)
    await message.nack(reason=text, confirm=True)
    await directory.stop()
    assert not found_on_disk(directory.path)

    lane = await directory.start()
    await lane.create_topic("open", sealed=False)
    await lane.publish("open", MARKER)
    lane = await directory.restart()
    assert found_on_disk(directory.path)
    assert await take_payloads(lane.consume("open", "s"), 1) == [MARKER]


# --- what is kept -----------------------------------------------------------------------------------------------------


async def test_a_topic_in_memory_is_there_after_a_restart_and_its_messages_are_not(directory: Broker) -> None:
    await directory.lane.create_topic("scratch", durable=False)
    await directory.lane.publish("scratch", MARKER)
    assert await take_payloads(directory.lane.consume("scratch", "s"), 1) == [MARKER]
    await directory.lane.publish("scratch", b"lost")

    lane = await directory.restart()

    description = await lane.describe_topic("scratch")
    assert (description.config.durable, description.partitions[0].end, description.subscriptions) == (False, 0, ())
    await lane.publish("scratch", b"new")
    assert await take_payloads(lane.consume("scratch", "s"), 1) == [b"new"]


async def test_settled_messages_go_after_their_time_and_unsettled_ones_stay(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(retention_check_seconds=0.01))
    await lane.create_topic("orders", retention_seconds=0)
    async with lane.consume("orders", "billing"):
        pass
    await lane.publish_many("orders", [b"a", b"b"])
    await lane.publish_many("orders", [b"c", b"d"])
    assert await take_payloads(lane.consume("orders", "billing"), 2) == [b"a", b"b"]

    async def is_trimmed() -> bool:
        return (await lane.describe_topic("orders")).partitions[0].start == 2

    await eventually(is_trimmed)
    assert await take_payloads(lane.consume("orders", "late"), 2) == [b"c", b"d"]
    assert await lane.seek("orders", "billing", "earliest") == {0: 2}


async def test_dead_letters_stay_until_they_are_driven_back(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(retention_check_seconds=0.01, topics=TopicSettings(retention_seconds=0)))
    async with lane.consume("orders", "billing"):
        pass
    await lane.publish("orders", b"poison")
    [message] = await take(lane.consume("orders", "billing", retry=sealane.Retry("fixed", 0, attempts_max=1)), 1)
    await message.nack(reason="broken")

    async def is_trimmed() -> bool:
        return (await lane.describe_topic("orders")).partitions[0].start == 1

    await eventually(is_trimmed)
    assert (await lane.redrive("orders", "billing")).messages == 1
    assert await take_payloads(lane.consume("orders", "billing"), 1) == [b"poison"]


async def test_a_full_disk_refuses_publishes_and_recovers(tmp_path: Path) -> None:
    storage = StorageSettings(
        segment_bytes=64 * 1024, segment_bytes_first=64 * 1024, disk_bytes_max=1024 * 1024, space_retry_seconds=0.01
    )
    settings = NodeSettings(retention_check_seconds=0.01)
    async with sealane.embedded(tmp_path / "data", storage=storage, settings=settings) as lane:
        await lane.create_topic("orders", retention_seconds=0, sealed=False)
        async with lane.consume("orders", "billing") as messages:
            stored = 0
            with pytest.raises(sealane.StorageFull, match="resumes by itself"):
                while stored < 1_000:
                    await lane.publish("orders", os.urandom(8_000))
                    stored += 1
            assert 0 < stored < 1_000
            await take_payloads(messages, stored)

        async def publishes_again() -> bool:
            try:
                await lane.publish("orders", b"again")
            except sealane.StorageFull:
                return False
            return True

        await eventually(publishes_again)


async def test_many_segments_and_restarts_keep_everything(tmp_path: Path) -> None:
    storage = StorageSettings(segment_bytes=16 * 1024, segment_bytes_first=16 * 1024, tail_bytes_max=16 * 1024)
    payloads = [b"%d " % index + b"x" * 500 for index in range(300)]
    for start in range(0, 300, 100):
        async with sealane.embedded(tmp_path / "data", storage=storage) as lane:
            for payload in payloads[start : start + 100]:
                await lane.publish("orders", payload)
            assert await take_payloads(lane.consume("orders", f"s{start}"), start + 100) == payloads[: start + 100]
    async with sealane.embedded(tmp_path / "data", storage=storage) as lane:
        assert await take_payloads(lane.consume("orders", "s100"), 100) == payloads[200:]
