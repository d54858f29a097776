"""Sealane: a message broker whose queues are tables.

import sealane

async with sealane.embedded("data") as lane:
await lane.publish("orders", b"hello")
async for message in lane.consume("orders", subscription="billing"):
await message.ack()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sealane._version import __version__
from sealane.errors import (
    AlreadyExists,
    Closed,
    CorruptData,
    DataDirectoryInUse,
    DeadlineExceeded,
    ExchangeNotFound,
    FilterError,
    Forbidden,
    FormatTooNew,
    InvalidArgument,
    InvalidBatch,
    InvalidMessage,
    InvalidName,
    KeyUnavailable,
    LeaseLost,
    LimitExceeded,
    ModeConflict,
    NotFound,
    QueueFull,
    SealaneError,
    StaleSequence,
    StorageError,
    StorageFailed,
    StorageFull,
    SubscriptionNotFound,
    TopicNotFound,
    TransactionAborted,
    Unauthenticated,
    Unavailable,
    Unroutable,
)

if TYPE_CHECKING:
    from sealane.client import Lane, Message, MessageBatch, Producer, Transaction, connect, embedded
    from sealane.delivery.config import Retry
    from sealane.node.receipts import Receipt

__all__ = [
    "AlreadyExists",
    "Closed",
    "CorruptData",
    "DataDirectoryInUse",
    "DeadlineExceeded",
    "ExchangeNotFound",
    "FilterError",
    "Forbidden",
    "FormatTooNew",
    "InvalidArgument",
    "InvalidBatch",
    "InvalidMessage",
    "InvalidName",
    "KeyUnavailable",
    "Lane",
    "LeaseLost",
    "LimitExceeded",
    "Message",
    "MessageBatch",
    "ModeConflict",
    "NotFound",
    "Producer",
    "QueueFull",
    "Receipt",
    "Retry",
    "SealaneError",
    "StaleSequence",
    "StorageError",
    "StorageFailed",
    "StorageFull",
    "SubscriptionNotFound",
    "TopicNotFound",
    "Transaction",
    "TransactionAborted",
    "Unauthenticated",
    "Unavailable",
    "Unroutable",
    "__version__",
    "connect",
    "embedded",
]

_HOMES = {
    "Lane": "sealane.client",
    "Message": "sealane.client",
    "MessageBatch": "sealane.client",
    "Producer": "sealane.client",
    "Receipt": "sealane.node.receipts",
    "Retry": "sealane.delivery.config",
    "Transaction": "sealane.client",
    "connect": "sealane.client",
    "embedded": "sealane.client",
}


def __getattr__(name: str) -> Any:
    """Load a part when it is first asked for: `import sealane` itself stays quick."""
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sealane' has no attribute {name!r}")
