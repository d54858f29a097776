"""What a node tells others on its machine: that it runs, and where its doors are."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from sealane.errors import CorruptData

NODE_FILE = "node.json"
"""In its data directory, for as long as it runs."""


class Notice(msgspec.Struct, frozen=True):
    """What the ready file says: all doors of this process answer."""

    pid: int
    doors: dict[str, str]
    """`host:port` by the door's name."""


class NodeNotice(Notice, frozen=True):
    """What `node.json` says, for the command line on the same machine."""

    insecure: bool = False
    """Whether its doors take plain text, and everyone."""

    @property
    def is_running(self) -> bool:
        """Whether its process, or another one of that number, is there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


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
