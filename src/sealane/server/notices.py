"""Where a node tells others that it runs, and where its doors are: the ready file, and `node.json` in its data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sealane.client.notices import NODE_FILE, NodeNotice, Notice, read_node_notice
from sealane.whole_files import PRIVATE, replace_file

__all__ = ["NODE_FILE", "NodeNotice", "Notice", "Opened", "notice", "post", "read_node_notice", "take_down"]


@dataclass(frozen=True, slots=True)
class Opened:
    """What whoever started the node is told once all doors answer."""

    doors: Mapping[str, str]
    """`host:port` by the door's name."""
    fingerprint: str | None = None
    """SHA-256 of the authority's certificate, by which clients know the node; None of an insecure one."""
    first_start: bool = False
    """Whether the authority was made just now."""


def notice(doors: Mapping[str, str]) -> Notice:
    return Notice(os.getpid(), dict(doors))


def post(path: Path, content: Notice) -> None:
    """Write a notice for the owner alone; whoever reads it meanwhile sees the old one or the new one, whole."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(content), indent=0) + b"\n", PRIVATE)


def take_down(path: Path) -> None:
    path.unlink(missing_ok=True)
