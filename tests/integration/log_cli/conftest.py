"""A data directory, with the engine that writes it."""

from __future__ import annotations

import pytest

from tests.integration.log_cli.written import Node


@pytest.fixture
async def node(tmp_path):
    node = Node(tmp_path / "data")
    await node.start()
    yield node
    await node.engine.close()
