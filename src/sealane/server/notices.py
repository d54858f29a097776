"""Where a node tells others that it runs, and where its doors are: the ready file, and `node.json` in its data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from sealane.errors import CorruptData

NODE_FILE = "node.json"


class Notice(msgspec.Struct, frozen=True):
    """What the ready file says: all doors of this process answer."""

    pid: int
    doors: dict[str, str]
    """`host:port` by the door's name."""


class NodeNotice(Notice, frozen=True):
    """What `node.json` says, for the command line on the same machine."""

    insecure: bool = False
    """Whether its doors take plain text, and everyone."""


def notice(doors: Mapping[str, str]) -> Notice:
    return Notice(os.getpid(), dict(doors))


def post(path: Path, content: Notice) -> None:
    """Write a notice for the owner alone; whoever reads it meanwhile sees the old one or the new one, whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(content), indent=0) + b"\n")
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def take_down(path: Path) -> None:
    path.unlink(missing_ok=True)


def read_node_notice(directory: Path) -> NodeNotice | None:
    """What the node of this data directory said when it started; None if none runs, or none ever said so.

    After a node was killed, its last word is still there: whoever finds nobody at these addresses knows.
    """
    path = directory / NODE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeNotice)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.MsgspecError as error:
        raise CorruptData(f"{path} is not what a node writes: {error}; remove it, or restart the node") from None
