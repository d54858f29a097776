"""Where a message goes: from a routing key to topics, and from a key or an id to a partition."""

from __future__ import annotations

from sealane.routing.exchanges import Binding, Exchange, ExchangeKind
from sealane.routing.partitioning import partition_of, split_by_partition

__all__ = ["Binding", "Exchange", "ExchangeKind", "partition_of", "split_by_partition"]
