"""The pytest fixtures, as projects that use Sealane have them: with either plugin, and none."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

TEST = """
import asyncio
import pytest

{mark}
async def test_a_message_goes_round(sealane_lane):
    await sealane_lane.publish("orders", b"hello")
    async for message in sealane_lane.consume("orders", subscription="s"):
        assert message.payload == b"hello"
        await message.ack(confirm=True)
        break

{mark}
async def test_each_test_has_a_broker_of_its_own(sealane_lane):
    assert await sealane_lane.topics() == []

{mark}
async def test_it_runs_on_the_loop_of_the_test(sealane_lane):
    loop = asyncio.get_running_loop()
    await sealane_lane.publish("orders", b"hello")
    async with sealane_lane.consume("orders", subscription="s") as messages:
        assert asyncio.get_running_loop() is loop

{mark}
async def test_a_directory_is_durable(sealane_directory_lane, tmp_path):
    await sealane_directory_lane.publish("orders", b"hello")
    assert (tmp_path / "sealane-data" / "master.key").exists()

{mark}
async def test_both_at_once(sealane_lane, sealane_directory_lane):
    await sealane_lane.publish("orders", b"hello")
    assert await sealane_directory_lane.topics() == []
"""

ANYIO_BACKEND = """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


@pytest.fixture
def plugin_options() -> list[str]:
    """An installed Sealane is found by its entry point; a checkout on the path is not."""
    if any(point.name == "sealane" for point in entry_points(group="pytest11")):
        return []
    return ["-p", "sealane.testing.plugin"]


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    # In a process of its own: two event loop plugins in this one would see each other's fixtures.
    warnings = ["-W", "error", "-W", "ignore::pytest.PytestDeprecationWarning"]
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *warnings, *options)


def test_with_pytest_asyncio_in_auto_mode(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    pytester.makepyfile(TEST.format(mark=""))
    run(pytester, *plugin_options, "-p", "no:anyio", "-o", "asyncio_mode=auto").assert_outcomes(passed=5)


def test_with_pytest_asyncio_in_strict_mode(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    pytester.makepyfile(TEST.format(mark="@pytest.mark.asyncio"))
    run(pytester, *plugin_options, "-o", "asyncio_mode=strict").assert_outcomes(passed=5)


def test_with_anyio(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    pytest.importorskip("anyio")
    pytester.makeconftest(ANYIO_BACKEND)
    pytester.makepyfile(TEST.format(mark="@pytest.mark.anyio"))
    run(pytester, *plugin_options, "-p", "no:asyncio").assert_outcomes(passed=5)


def test_with_anyio_beside_pytest_asyncio(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    pytest.importorskip("anyio")
    pytester.makeconftest(ANYIO_BACKEND)
    pytester.makepyfile(TEST.format(mark="@pytest.mark.anyio"))
    run(pytester, *plugin_options, "-o", "asyncio_mode=strict").assert_outcomes(passed=5)


def test_without_either_it_says_what_is_missing(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    pytester.makepyfile("def test_it(sealane_lane): pass")
    result = run(pytester, *plugin_options, "-p", "no:asyncio", "-p", "no:anyio")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*install pytest-asyncio*"])


def test_the_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester, plugin_options: list[str]) -> None:
    result = run(pytester, *plugin_options, "--fixtures")
    result.stdout.fnmatch_lines(["sealane_lane*", "*in memory, which ends with the test*"])
    result.stdout.no_fnmatch_line("_sealane_memory*")


def test_sealane_itself_needs_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import sealane, sealane.testing; sealane.embedded()"
    subprocess.run([sys.executable, "-c", code], check=True)
