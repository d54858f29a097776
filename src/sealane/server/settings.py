"""All that a node's process can be told, as one tree of plain dataclasses.

Each part keeps its settings, with defaults and reasons, beside its code; here they only get their place. `load` fills
the tree from a file, the environment and flags.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.doors.grpc.settings import GrpcDoorSettings
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.native.settings import NativeDoorSettings
from sealane.engine.local import StorageSettings
from sealane.node import NodeSettings


@dataclass(frozen=True, slots=True)
class DoorsSettings:
    """`doors.*`: by which protocols clients come in."""

    native: NativeDoorSettings = field(default_factory=NativeDoorSettings)
    http: HttpDoorSettings = field(default_factory=HttpDoorSettings)
    grpc: GrpcDoorSettings = field(default_factory=GrpcDoorSettings)
    frames: FramesDoorSettings = field(default_factory=FramesDoorSettings)
    cipher: CipherDoorSettings = field(default_factory=CipherDoorSettings)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`log.*`: what the process says about itself, on standard error."""

    format: Literal["console", "json"] = "console"
    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One node's process. The limits and topics of `node` are written `limits.*` and `topics.*`."""

    data: str = "./sealane-data"
    """The data directory, relative to where the process was started."""
    insecure: bool = False
    """Plain text, no authentication, loopback only, every connection is the admin."""
    drain_seconds: float = 10.0
    """How long a stop waits for clients to finish what they have begun."""
    doors: DoorsSettings = field(default_factory=DoorsSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    log: LogSettings = field(default_factory=LogSettings)

    @property
    def directory(self) -> Path:
        return Path(self.data)
