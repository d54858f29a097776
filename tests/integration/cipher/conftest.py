"""Nodes with the cipher door open, each in a process of its own; tests have queues of their own on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from sealane.testing.node_process import NodeProcess
from tests.integration.cipher.plain_client import PlainClient

OPEN = {"doors.cipher.enabled": True, "doors.cipher.port": 0}
"""What a node is told that has this door."""
SHORT_LEASE_SECONDS = 1.0
SMALL_LINE_BYTES = 10_000
SMALL_WINDOW = 5

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """As it is by default."""
    with NodeProcess(tmp_path_factory.mktemp("cipher") / "data", OPEN) as running:
        yield running


@pytest.fixture(scope="package")
def tight_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One with a short lease, a small window and short lines."""
    settings = {
        **OPEN,
        "doors.cipher.lease_seconds": SHORT_LEASE_SECONDS,
        "doors.cipher.line_bytes_max": SMALL_LINE_BYTES,
        "doors.cipher.window_messages": SMALL_WINDOW,
        "log.level": "debug",
    }
    with NodeProcess(tmp_path_factory.mktemp("tight") / "data", settings) as running:
        yield running


@pytest.fixture
def address(node: NodeProcess) -> str:
    return node.doors["cipher"]


@pytest.fixture
def client(address: str) -> Iterator[PlainClient]:
    with PlainClient(address) as connected:
        yield connected


@pytest.fixture
def other(address: str) -> Iterator[PlainClient]:
    """Another connection to the same node."""
    with PlainClient(address) as connected:
        yield connected


@pytest.fixture
def tight(tight_node: NodeProcess) -> Iterator[PlainClient]:
    with PlainClient(tight_node.doors["cipher"]) as connected:
        yield connected


@pytest.fixture
def queue() -> str:
    """The name of one that no other test has."""
    return f"q{next(_numbers)}"
