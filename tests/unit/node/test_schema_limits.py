"""How many schemas a topic and a node may have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.node.schemas import registry


async def register(lane: sealane.Lane, topic: str, number: int) -> Any:
    return await lane.administer("schema.register", topic=topic, schema=f'{{"const": {number}}}', compatibility="none")


async def test_a_topic_has_so_many_versions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "VERSIONS_MAX", 3)
    async with sealane.embedded() as lane:
        for number in range(3):
            await register(lane, "orders", number)
        with pytest.raises(sealane.InvalidArgument, match="at most 3 are possible"):
            await register(lane, "orders", 3)
        assert not (await register(lane, "orders", 0))["new"]
        await lane.administer("schema.remove", topic="orders", version=2)
        assert (await register(lane, "orders", 3))["version"] == 4
        await register(lane, "others", 3)


@pytest.mark.parametrize(("limit", "value"), [("SCHEMAS_MAX", 2), ("SCHEMAS_BYTES_MAX", 30)])
async def test_a_node_has_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(registry, limit, value)
    async with sealane.embedded() as lane:
        await register(lane, "orders", 0)
        await register(lane, "others", 0)
        with pytest.raises(sealane.InvalidArgument, match=f"at most {value} are possible"):
            await register(lane, "more", 0)
        await lane.delete_topic("others")
        await register(lane, "more", 0)


async def test_registering_at_the_same_time_gives_each_its_own_number() -> None:
    async with sealane.embedded() as lane:
        found = await asyncio.gather(*(register(lane, "orders", number) for number in range(8)))
        assert sorted(each["version"] for each in found) == list(range(1, 9))
        assert len({each["id"] for each in found}) == 8
        again = await asyncio.gather(*(register(lane, "others", 5) for _ in range(8)))
        assert {each["version"] for each in again} == {1}


async def test_a_topic_that_is_deleted_meanwhile_leaves_nothing_behind() -> None:
    async with sealane.embedded() as lane:
        for _ in range(10):
            await lane.create_topic("orders")
            await asyncio.gather(register(lane, "orders", 1), lane.delete_topic("orders"), return_exceptions=True)
            await asyncio.gather(lane.delete_topic("orders"), return_exceptions=True)
            assert await lane.administer("schema.list") == []


async def test_whoever_gives_up_leaves_no_half_of_a_change(tmp_path: Path) -> None:
    async with sealane.embedded(tmp_path / "data") as lane:
        await lane.create_topic("orders")
        for number in range(20):
            changing = asyncio.create_task(register(lane, "orders", number))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            changing.cancel()
            await asyncio.wait([changing])
        known = await register(lane, "orders", 99)
        listed = await lane.administer("schema.list", topic="orders")
        assert [each["version"] for each in listed] == list(range(1, known["version"] + 1))
    async with sealane.embedded(tmp_path / "data") as lane:
        assert await lane.administer("schema.list", topic="orders") == listed
