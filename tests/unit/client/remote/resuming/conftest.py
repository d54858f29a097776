"""A scripted node, and a lane that has met it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import sealane
from tests.unit.client.remote.resuming.meeting import Meeting
from tests.unit.client.remote.scripted_node import ScriptedNode, scripted_node


@pytest.fixture
async def node() -> AsyncIterator[ScriptedNode]:
    async with scripted_node() as running:
        yield running


@pytest.fixture
async def meeting(node: ScriptedNode) -> AsyncIterator[Meeting]:
    connecting = sealane.connect(node.url, connections=1, timeout=60)
    entering = asyncio.create_task(connecting.__aenter__())
    visitor = await node.welcomed()
    lane = await entering
    yield Meeting(lane, visitor)
    # Nobody answers any more: as after an error, nothing is waited for.
    await connecting.__aexit__(RuntimeError, RuntimeError(), None)
