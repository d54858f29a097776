"""Engines: where partitions' logs and compare-and-set values live."""

from sealane.engine.backup_report import BacksUp, BackupReport, PartitionOffsets
from sealane.engine.contract import (
    Append,
    Engine,
    Opened,
    Packed,
    PartitionKey,
    ReadsPacked,
    Span,
    Stored,
    Usage,
    Value,
)

__all__ = [
    "Append",
    "BackupReport",
    "BacksUp",
    "Engine",
    "Opened",
    "Packed",
    "PartitionKey",
    "PartitionOffsets",
    "ReadsPacked",
    "Span",
    "Stored",
    "Usage",
    "Value",
]
