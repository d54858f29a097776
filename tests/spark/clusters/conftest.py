"""One cluster, and one node, for all tests of clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.clusters.standalone import StandaloneCluster
from tests.spark.worker_python import WorkerPython, build_wheel


@pytest.fixture(scope="session")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def python_with_wheel(tmp_path_factory: pytest.TempPathFactory) -> WorkerPython:
    """Where Sealane is installed as users install it."""
    folder = tmp_path_factory.mktemp("wheel")
    python = WorkerPython(folder / "venv")
    python.install(build_wheel(folder))
    return python


@pytest.fixture(scope="session")
def python_without(tmp_path_factory: pytest.TempPathFactory) -> WorkerPython:
    """Where there is no Sealane."""
    return WorkerPython(tmp_path_factory.mktemp("without") / "venv")
