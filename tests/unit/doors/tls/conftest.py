"""An authority, and the TLS of a node that it has issued a certificate to."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealane.doors.tls import NodeTls
from tests.unit.doors.tls.papers import Papers


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path / "ours", "ours")


@pytest.fixture
def tls(papers: Papers) -> NodeTls:
    return NodeTls(*papers.issue("server", "server"), papers.authority.pem)
