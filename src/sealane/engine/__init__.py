"""Engines: where partitions' logs and compare-and-set values live."""

from sealane.engine.backup_report import BacksUp, BackupReport, PartitionOffsets
from sealane.engine.contract import Append, Engine, Opened, PartitionKey, Span, Stored, Usage, Value

__all__ = [
    "Append",
    "BackupReport",
    "BacksUp",
    "Engine",
    "Opened",
    "PartitionKey",
    "PartitionOffsets",
    "Span",
    "Stored",
    "Usage",
    "Value",
]
