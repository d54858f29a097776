"""Every scenario of the blocking client runs on every broker that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sealane
from sealane.client.sync.portal import Portal
from tests.native_node import native_node


@pytest.fixture(params=["memory", "directory", "native"])
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sealane.SyncLane]:
    """An open lane to a broker of each kind; the native one has a thread of its own in this process."""
    if request.param == "native":
        node = Portal(native_node)
        url = node.open().url
        with sealane.connect_sync(url) as lane:
            yield lane
        node.close()
    else:
        with sealane.embedded_sync(None if request.param == "memory" else tmp_path / "data") as lane:
            yield lane
