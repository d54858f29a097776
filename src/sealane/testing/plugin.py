"""The pytest plugin: `sealane_lane` is a lane on a broker in memory, `sealane_directory_lane` one on a directory.

Both are made for each test and closed after it, on the event loop that the test runs on. They work with pytest-asyncio
in either mode and with anyio's plugin on its asyncio backend, whichever runs the test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sealane import Lane

ASYNCIO_PLUGIN = "asyncio"
ANYIO_PLUGIN = "anyio"
DIRECTORY = "sealane-data"


def _asyncio_fixture(function: Callable[..., Any]) -> object:
    """A fixture that pytest-asyncio runs, in its strict mode too; a plain one where it is not installed."""
    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture(function)
    return pytest_asyncio.fixture(function)


async def _opened(path: Path | None) -> AsyncIterator[Lane]:
    import sealane

    async with sealane.embedded(path) as lane:
        yield lane


# Each of the two plugins marks and runs functions of its own, so there is one of each lane for either.
@_asyncio_fixture
async def _sealane_memory_asyncio() -> AsyncIterator[Lane]:
    async for lane in _opened(None):
        yield lane


@_asyncio_fixture
async def _sealane_directory_asyncio(tmp_path: Path) -> AsyncIterator[Lane]:
    async for lane in _opened(tmp_path / DIRECTORY):
        yield lane


@pytest.fixture
async def _sealane_memory_anyio() -> AsyncIterator[Lane]:
    async for lane in _opened(None):
        yield lane


@pytest.fixture
async def _sealane_directory_anyio(tmp_path: Path) -> AsyncIterator[Lane]:
    async for lane in _opened(tmp_path / DIRECTORY):
        yield lane


@pytest.fixture
def sealane_lane(request: pytest.FixtureRequest) -> Lane:
    """A lane on a broker in memory, which ends with the test."""
    return _lane(request, "memory")


@pytest.fixture
def sealane_directory_lane(request: pytest.FixtureRequest) -> Lane:
    """A lane on a broker whose topics are durable, in the test's own `tmp_path / "sealane-data"`."""
    return _lane(request, "directory")


def _lane(request: pytest.FixtureRequest, kind: str) -> Lane:
    if "anyio_backend" in request.fixturenames:
        runner = ANYIO_PLUGIN
    elif request.config.pluginmanager.hasplugin(ASYNCIO_PLUGIN):
        runner = ASYNCIO_PLUGIN
    else:
        raise pytest.UsageError(
            "sealane_lane is for asynchronous tests: install pytest-asyncio, or mark the test with pytest.mark.anyio"
        )
    lane: Lane = request.getfixturevalue(f"_sealane_{kind}_{runner}")
    return lane
