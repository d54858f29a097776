"""Destroying a domain's keys: its data is gone from that moment, whatever copies of its files exist."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import sealane
from sealane.cli.data_directory import DataDirectory
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.engine.local.compacted import open_journal, open_messages
from sealane.engine.local.record import MESSAGES, SEALED
from sealane.errors import InvalidArgument, KeyUnavailable, StorageError, TopicNotFound
from sealane.node import Node
from sealane.node.surroundings import of_this_machine
from sealane.security.at_rest.keys import KeyDestroyed
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node

MARKER = b"MARK of shop "
STORAGE = StorageSettings(
    segment_bytes=64 << 10, segment_bytes_first=16 << 10, compaction_segments_min=2, compaction_segments_max=2
)


async def fill(lane: sealane.Lane, *domains: str) -> None:
    for domain in domains:
        await lane.publish_many(f"{domain}/orders", [MARKER + b"%d" % number for number in range(300)])
        for number in range(100):
            await lane.publish(f"{domain}/orders", MARKER * 10 + b"%d" % number)


async def destroy(lane: sealane.Lane, domain: str) -> dict[str, int]:
    answer: dict[str, int] = await lane.administer("key.destroy", domain=domain, confirmed=domain)
    return answer


def sealed_entries(directory: Path, domain: str) -> int:
    """How many sealed entries of the domain the files hold, each tried with all the keys that there are."""
    tried = 0
    with DataDirectory.look(directory) as view:
        sealer = view.sealer()
        for name in view.segments:
            for found in view.scan(name).records:
                for entry, position in found.bodies():
                    if entry.partition.domain == domain and entry.flags & SEALED:
                        raw = view.file(name).read_at(position, entry.body_bytes)
                        opens = open_messages if entry.kind == MESSAGES else open_journal
                        with pytest.raises(KeyDestroyed):
                            opens(
                                raw,
                                partition=entry.partition,
                                base=entry.base,
                                count=entry.count,
                                flags=entry.flags,
                                sealer=sealer,
                            )
                        tried += 1
    return tried


async def test_all_files_and_the_master_key_together_open_nothing_of_it(tmp_path: Path) -> None:
    data, before = tmp_path / "data", tmp_path / "before"
    storage = StorageSettings(compaction=False)
    async with sealane.embedded(data, storage=storage) as lane:
        await fill(lane, "shop")
        assert (await destroy(lane, "shop"))["topics"] == 1
        shutil.copytree(data, before)
        await fill(lane, "sales")
    # What was there in that moment, and what is there now: every sealed entry is tried, and none opens.
    assert sealed_entries(before, "shop") > 0
    assert sealed_entries(data, "shop") > 0
    assert not any(b"MARK of shop" in content for content in (*contents(before), *contents(data)))


def contents(directory: Path) -> list[bytes]:
    return [path.read_bytes() for path in directory.rglob("*") if path.is_file()]


async def test_the_wrapped_keys_are_in_no_file_any_more(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await fill(lane, "shop", "sales")
        connection = sqlite3.connect(tmp_path / "meta.db")
        wrapped = {domain: bytes(key) for domain, key in connection.execute("SELECT domain, wrapped FROM domain_keys")}
        connection.close()
        await destroy(lane, "shop")
        content = contents(tmp_path)
        assert not any(wrapped["shop"] in data for data in content)
        assert any(wrapped["sales"] in data for data in content)


async def test_topics_are_gone_and_their_consumers_are_told(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await fill(lane, "shop", "sales")

        async def consume() -> None:
            destroyed = False
            async for _ in lane.consume("shop/orders", "billing"):
                if not destroyed:
                    await destroy(lane, "shop")
                    destroyed = True

        with pytest.raises(TopicNotFound):
            await asyncio.wait_for(consume(), DEADLINE_SECONDS)
        assert await lane.topics() == ["sales/orders"]


async def test_other_domains_lose_nothing_and_the_destroyed_one_begins_anew(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await fill(lane, "shop", "sales")
        await destroy(lane, "shop")
    for _ in range(2):
        async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
            assert (await lane.describe_topic("sales/orders")).partitions[0].end == 400
            assert len(await everything(lane, "sales/orders", 400)) == 400
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await lane.publish("shop/orders", b"anew")
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        assert await everything(lane, "shop/orders", 1) == [b"anew"]


async def everything(lane: sealane.Lane, topic: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for message in lane.consume(topic, f"reader-{os.urandom(4).hex()}"):
            found.append(message.payload)
            if len(found) == count:
                break
    return found


async def test_publishers_meanwhile_harm_nobody(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        stop = asyncio.Event()

        async def keep_publishing(domain: str) -> int:
            refused = 0
            while not stop.is_set():
                try:
                    await lane.publish(f"{domain}/orders", b"again")
                except TopicNotFound:
                    refused += 1
            return refused

        publishing = [asyncio.create_task(keep_publishing(domain)) for domain in ("shop", "sales")]
        async with asyncio.timeout(DEADLINE_SECONDS):
            destroyed = 0
            while destroyed < 20:
                await asyncio.sleep(0)
                if "shop/orders" in await lane.topics():
                    await destroy(lane, "shop")
                    destroyed += 1
        stop.set()
        assert (await asyncio.gather(*publishing))[1] == 0


async def test_what_a_crash_cuts_short_is_finished_by_the_next_start(tmp_path: Path) -> None:
    surroundings = of_this_machine()

    async def opened() -> Node:
        engine = await LocalEngine.start(
            DiskFiles(tmp_path), settings=STORAGE, clock=surroundings.clock, entropy=surroundings.entropy
        )
        return await Node.open(engine, surroundings)

    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await fill(lane, "shop", "sales")
    node = await opened()
    await node.engine.put("destroying/shop", b"", expected=0)
    await node.close()
    node = await opened()
    assert set(node.topics) == {"sales/orders"}
    assert isinstance(node.engine, LocalEngine)
    assert not node.engine.sealer.keyring.has("shop")
    assert await node.engine.scan("destroying/") == []
    await node.close()


async def test_keys_that_went_without_their_topics_leave_topics_that_are_empty(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await fill(lane, "shop")
    engine = await LocalEngine.start(
        DiskFiles(tmp_path), settings=STORAGE, clock=of_this_machine().clock, entropy=os.urandom
    )
    engine.sealer.keyring.destroy("shop")
    await engine.close()
    async with sealane.embedded(tmp_path, storage=STORAGE) as lane:
        await lane.publish("shop/orders", b"anew")
        assert await everything(lane, "shop/orders", 1) == [b"anew"]


async def test_the_systems_own_keys_cannot_be_destroyed(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path) as lane:
        with pytest.raises(InvalidArgument, match="_system"):
            await destroy(lane, "_system")


async def test_a_name_that_is_not_repeated_destroys_nothing(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path) as lane:
        await lane.publish("shop/orders", b"x")
        with pytest.raises(InvalidArgument, match="nothing was destroyed"):
            await lane.administer("key.destroy", domain="shop", confirmed="shpo")
        assert await lane.topics() == ["shop/orders"]


async def test_a_domain_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path) as lane:
        with pytest.raises(KeyUnavailable, match="'shpo' has no key and no topics"):
            await destroy(lane, "shpo")


async def test_a_node_in_memory_has_no_keys() -> None:
    async with running_node() as running:
        for command, arguments in (
            ("key.status", {}),
            ("key.rotate", {"all": True}),
            ("key.rotate_master", {}),
            ("key.destroy", {"domain": "shop", "confirmed": "shop"}),
        ):
            with pytest.raises(StorageError, match="in memory"):
                await running.lane.administer(command, **arguments)
