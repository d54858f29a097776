"""A node in memory behind its http door."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.http_node import HttpNode, http_node


@pytest.fixture
async def node() -> AsyncIterator[HttpNode]:
    async with http_node() as running:
        yield running
