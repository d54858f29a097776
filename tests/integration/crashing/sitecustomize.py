"""Makes a node crash where it holds secrets: Python loads this at its start if the directory is on its path."""

from __future__ import annotations

import sys
from typing import Any

CRASHING = "crashing"
"""In a topic's name."""


def _plant() -> None:
    from sealane.node.node import Node

    genuine = Node.start_publish

    def start_publish(node: Node, name: str, batch: Any) -> Any:
        if CRASHING not in name:
            return genuine(node, name, batch)
        payloads, everything = batch.payloads(), batch
        raise RuntimeError(f"planted: {len(payloads)} messages in {everything!r}")

    Node.start_publish = start_publish  # type: ignore[assignment, method-assign]


if "up" in sys.orig_argv:
    _plant()
