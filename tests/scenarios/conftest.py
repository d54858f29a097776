"""Every scenario runs on every broker that there is: what a user sees must not depend on where the messages are."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sealane
from tests.scenarios.broker import Broker


class Crashes(logging.Handler):
    """Hears of every crash in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
async def no_stray_errors() -> AsyncIterator[None]:
    """Errors that nobody awaits are errors of the scenario; so are crashes that a node survives."""
    stray: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    crashes = Crashes()
    logging.getLogger("sealane.node.supervision").addHandler(crashes)
    gc.freeze()  # What was there before is not looked through: that would take longer than most scenarios.
    yield
    gc.collect()
    await asyncio.sleep(0)
    logging.getLogger("sealane.node.supervision").removeHandler(crashes)
    assert stray == []
    assert crashes.seen == []


async def _running(path: Path | None, *, over_the_wire: bool = False) -> AsyncIterator[Broker]:
    broker = Broker(path, over_the_wire=over_the_wire)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture(params=["memory", "directory", "native"])
async def broker(request: pytest.FixtureRequest, tmp_path: Path, no_stray_errors: None) -> AsyncIterator[Broker]:
    """A running broker of each kind: in memory, in a directory, and at the other end of a connection."""
    path = tmp_path / "data" if request.param == "directory" else None
    async for running in _running(path, over_the_wire=request.param == "native"):
        yield running


@pytest.fixture
async def directory(tmp_path: Path, no_stray_errors: None) -> AsyncIterator[Broker]:
    """A running broker whose topics outlive it."""
    async for running in _running(tmp_path / "data"):
        yield running


@pytest.fixture
def lane(broker: Broker) -> sealane.Lane:
    return broker.lane
