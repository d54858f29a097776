"""What every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from tests.java import start_soon

# Suites and oracles assert on behalf of the tests that import them; a failure should show the values there too.
pytest.register_assert_rewrite("tests.contract", "tests.simulation")

LONGEST = (
    "tests/spark/killing",
    "tests/spark/pipeline/killing",
    "tests/spark/clusters",
    "tests/clients",
    "tests/integration/bench/test_spark_works",
)
"""Most of their tests start Spark, some of them many times; those of other clients have suites of their own."""
SPARK = "tests/spark"

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# The same examples on every run, so that a red build is red for its commit; a developer's runs go on exploring.
settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("dev", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


# Hundreds of processes load numpy, whose threads for linear algebra would each spin for a tenth of a second.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

start_soon()

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would all that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def require_service() -> Callable[[str, bool, str], None]:
    """Call `require_service(name, found, install)` before using a service that may not be on this machine.

    When it was not found, the test is skipped on a laptop, with the line that installs it, and fails in CI.
    """

    def require(name: str, found: bool, install: str) -> None:
        if found:
            return
        problem = f"{name} is not on this machine; install it with: {install}"
        if IN_CI:
            pytest.fail(problem)
        pytest.skip(problem)

    return require


@pytest.fixture(autouse=True, scope="module")
def what_stays_is_not_looked_through_for_garbage() -> None:
    """Ten thousand tests are half a million objects. The garbage collector would go through all of them again and
    again while a test runs that makes many objects, and take four times as long as the test itself.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever takes Java is slow. What takes long comes first: at the end, one process would wait for the other. Tests
    of Spark come one after the other, so that one process has its session, and the other takes from the end of the
    rest. A file stays together, since its tests share what they need.
    """
    for item in items:
        if "java" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
    slow = {file_of(item) for item in items if item.get_closest_marker("slow")}

    def turn(item: pytest.Item) -> tuple[bool, bool, bool]:
        file = file_of(item)
        return not file.startswith(LONGEST), not file.startswith(SPARK), file not in slow

    items.sort(key=turn)


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
