"""The local engine: one machine, one write-ahead log, one process a data directory."""

from sealane.engine.local.backup import backup_directory
from sealane.engine.local.engine import LocalEngine
from sealane.engine.local.files import DiskFiles
from sealane.engine.local.recovery import Quarantined, RecoveryReport
from sealane.engine.local.restore import RestoreReport, restore
from sealane.engine.local.settings import StorageSettings

__all__ = [
    "DiskFiles",
    "LocalEngine",
    "Quarantined",
    "RecoveryReport",
    "RestoreReport",
    "StorageSettings",
    "backup_directory",
    "restore",
]
