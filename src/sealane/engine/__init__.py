"""Engines: where partitions' logs and compare-and-set values live."""

from sealane.engine.contract import Append, Engine, Opened, PartitionKey, Span, Stored, Usage, Value

__all__ = ["Append", "Engine", "Opened", "PartitionKey", "Span", "Stored", "Usage", "Value"]
