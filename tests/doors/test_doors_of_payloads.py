"""Doors whose protocols have payloads and little else: what they can say is the same there as by every other door."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sealane.security.grants.grants import Grant
from tests.doors.by_frames import by_frames
from tests.doors.node import ManyDoors, many_doors, what_expires_at_once_has_expired
from tests.doors.speaking import Given
from tests.doors.test_every_door import DOORS, FULL, NOBODY, deadline, every_door
from tests.scenarios.broker import all_settled

__all__ = ["deadline"]


@pytest.fixture
async def doors() -> AsyncIterator[ManyDoors]:
    async with many_doors() as opened:
        yield opened


@every_door
async def test_what_comes_in_as_frames_goes_out_by_every_door(doors: ManyDoors, door: str) -> None:
    async with by_frames(doors) as frames, DOORS[door](doors) as other:
        assert await frames.publish(b"", b"\x00\xff payload", b"last") == ""
        taken = await other.take("t", "s", 3)
        assert [each.payload for each in taken] == [b"", b"\x00\xff payload", b"last"]
        assert [(each.key, each.headers, each.priority, each.attempt) for each in taken] == [(None, {}, 5, 1)] * 3
        await other.ack("t", "s", taken)
    await all_settled(doors.admin, "t", "s")


@every_door
async def test_what_comes_in_by_any_door_goes_out_as_frames(doors: ManyDoors, door: str) -> None:
    async with by_frames(doors) as frames, DOORS[door](doors) as other:
        await other.publish(
            "t", FULL, Given(b"later", delay=0.1), Given(b"gone", ttl=0.000_001), Given(b"urgent", priority=9)
        )
        await what_expires_at_once_has_expired()
        assert await frames.take(3) == [b"urgent", FULL.payload, b"later"]
        await all_settled(doors.admin, "t", "s")


async def test_whoever_has_no_grant_may_neither_publish_nor_consume(doors: ManyDoors) -> None:
    await doors.admin.publish("t", b"secret")
    doors.guest = NOBODY
    async with by_frames(doors) as frames:
        assert "may not publish" in await frames.publish(b"a")
        assert b"may not consume" in (await frames.take(1))[0]
        await doors.node.identity.grants.add(Grant("nobody", "publish", "default/t"))
        assert await frames.publish(b"a") == ""


async def test_a_stranger_is_sent_away(doors: ManyDoors) -> None:
    doors.stranger = True
    async with by_frames(doors) as frames:
        assert await frames.publish(b"a") == "ERROR: nobody knows you"
