"""One node for all tests of a file: each uses topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.cli.shell import Shell
from tests.integration.server.up import Up


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    directory = tmp_path_factory.mktemp("node")
    with Up(directory) as node:
        yield Shell(node.data)
