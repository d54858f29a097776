"""A secure node that something has happened on, and Prometheus's way into it: one for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sealane
from sealane.errors import SealaneError
from tests.deploy.exposition import Exposition
from tests.deploy.scraping import KEY_OF_ANOTHER_NODE, Watcher, introduce
from tests.integration.server.up import Up

SETTINGS = (
    "security.certificates.names=sealane",  # As the hostname in compose.yaml has it.
    "storage.disk_bytes_max=20GiB",
    "webhooks.hosts=hooks.example.com",
)


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("node"), *(f"--set={each}" for each in SETTINGS), insecure=False) as node:
        make_happen(node)
        yield node


def make_happen(node: Up) -> None:
    """A little of what is measured, so that metrics have their labels."""
    with sealane.connect_sync(profile=node.data / "admin.profile") as lane:
        lane.publish_many("orders", [b"1", b"2", b"3"])
        taken = iter(lane.consume("orders", subscription="billing"))
        next(taken).ack(confirm=True)
        next(taken).nack(delay=60)
        with pytest.raises(SealaneError):
            lane.delete_topic("nobody-made-it")


@pytest.fixture(scope="session")
def watcher(node: Up, tmp_path_factory: pytest.TempPathFactory) -> Watcher:
    directory = tmp_path_factory.mktemp("watcher")
    (directory / "metrics.key").write_text(KEY_OF_ANOTHER_NODE)
    introduce(node, directory)
    return Watcher(node, directory)


@pytest.fixture(scope="session")
def exposition(watcher: Watcher) -> Exposition:
    status, text = watcher.ask("/metrics")
    assert status == 200, text
    return Exposition(text)
