"""A node in memory that looks at retention all the time, and a lane on it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from sealane.client.embedded import in_process
from sealane.client.lane import Lane
from sealane.engine.memory import MemoryEngine
from sealane.node import Node, NodeSettings
from sealane.node.surroundings import Surroundings, wall_clock_us


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    settings = NodeSettings(retention_check_seconds=0.01)
    node = await Node.open(MemoryEngine(wall_clock_us), Surroundings(wall_clock_us, os.urandom), settings)
    yield node
    await node.close()


@pytest.fixture
async def lane(node: Node) -> AsyncIterator[Lane]:
    async with in_process(node) as lane:
        yield lane
