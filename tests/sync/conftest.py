"""Every scenario of the blocking client runs on every broker that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sealane


@pytest.fixture(params=["memory", "directory"])
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sealane.SyncLane]:
    """An open lane to a broker of each kind."""
    with sealane.embedded_sync(None if request.param == "memory" else tmp_path / "data") as lane:
        yield lane
