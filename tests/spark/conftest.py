"""Spark as it is: one session for all tests of a process, since its start takes seconds, and real nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sealane
from sealane.spark.options.access import close_lanes
from sealane.testing.node_process import NodeProcess
from tests.java import JAVA_INSTALL, has_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def java(require_service: Callable[[str, bool, str], None]) -> None:
    """Java 17 or newer, which Spark runs on."""
    require_service("Java", has_java(), JAVA_INSTALL)


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of this process: two cores, one gigabyte, `format("sealane")`. Nothing of a test may stay in it."""
    from sealane.spark import session

    directory = tmp_path_factory.mktemp("spark")
    spark = session(
        "sealane-tests",
        master="local[2]",
        spark_driver_memory="1g",
        spark_sql_shuffle_partitions=2,
        spark_default_parallelism=2,
        spark_local_dir=str(directory / "local"),
        spark_sql_warehouse_dir=str(directory / "warehouse"),
        spark_sql_streaming_checkpointLocation=str(directory / "checkpoints"),
    )
    yield spark
    spark.stop()


@pytest.fixture(autouse=True)
def no_query_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A query that goes on would slow the tests that follow, and fail in their time."""
    yield
    if "spark" in request.fixturenames:
        spark: SparkSession = request.getfixturevalue("spark")
        for query in spark.streams.active:
            query.stop()


@pytest.fixture(autouse=True)
def no_lane_outlives_its_test() -> Iterator[None]:
    """Some tests do here what drivers and executors do: their lanes would be in the way of tests of lanes."""
    yield
    close_lanes()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node without TLS, for all tests of this process: each uses topics of its own. See `own_node`."""
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as node:
        yield node


@pytest.fixture
def lane(node: NodeProcess) -> Iterator[sealane.SyncLane]:
    with sealane.connect_sync(node.url) as lane:
        yield lane


@pytest.fixture(scope="session")
def secure_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with TLS and authentication, for all tests of this process; its `profile` is the admin's."""
    with NodeProcess.secure(tmp_path_factory.mktemp("secure-node") / "data") as node:
        yield node


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node that this test may stop, kill and start."""
    with NodeProcess(tmp_path / "node") as node:
        yield node


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test knows."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{name[:80].strip('-')}-{abs(hash(request.node.nodeid)):x}"
