"""Nodes with a frames door, in either of its modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.frames_node import FramesNode, frames_node, on_a_thread


@pytest.fixture
def queue() -> Iterator[FramesNode]:
    with on_a_thread(frames_node(mode="queue")) as node:
        yield node


@pytest.fixture
def broadcast() -> Iterator[FramesNode]:
    with on_a_thread(frames_node()) as node:
        yield node
