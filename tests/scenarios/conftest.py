"""Every scenario runs on every broker that there is: what a user sees must not depend on where the messages are."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sealane
from tests.scenarios.broker import Broker


@pytest.fixture
async def no_stray_errors() -> AsyncIterator[None]:
    """Errors in tasks and callbacks that nobody awaits are errors of the scenario."""
    stray: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    gc.freeze()  # What was there before is not looked through: that would take longer than most scenarios.
    yield
    gc.collect()
    gc.unfreeze()
    await asyncio.sleep(0)
    assert stray == []


async def _running(path: Path | None) -> AsyncIterator[Broker]:
    broker = Broker(path)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture(params=["memory", "directory"])
async def broker(request: pytest.FixtureRequest, tmp_path: Path, no_stray_errors: None) -> AsyncIterator[Broker]:
    """A running broker of each kind."""
    async for running in _running(None if request.param == "memory" else tmp_path / "data"):
        yield running


@pytest.fixture
async def directory(tmp_path: Path, no_stray_errors: None) -> AsyncIterator[Broker]:
    """A running broker whose topics outlive it."""
    async for running in _running(tmp_path / "data"):
        yield running


@pytest.fixture
def lane(broker: Broker) -> sealane.Lane:
    return broker.lane
