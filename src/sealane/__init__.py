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
    CannotOpen,
    Closed,
    CorruptData,
    DataDirectoryInUse,
    DeadlineExceeded,
    ExchangeNotFound,
    FilterError,
    Forbidden,
    FormatTooNew,
    IncompatibleSchema,
    InvalidArgument,
    InvalidBatch,
    InvalidMessage,
    InvalidName,
    InvalidSchema,
    KeyPinMismatch,
    KeyUnavailable,
    LeaseLost,
    LimitExceeded,
    MissingExtra,
    ModeConflict,
    NotFound,
    QueueFull,
    RateLimited,
    RecipientNotFound,
    SchemaMismatch,
    SchemaNotFound,
    SealaneError,
    StagedPartLost,
    StaleSequence,
    StorageError,
    StorageFailed,
    StorageFull,
    SubscriptionNotFound,
    TooManyConnections,
    TopicNotFound,
    TransactionAborted,
    Unauthenticated,
    Unavailable,
    Unroutable,
    UntrustedNode,
    WouldBlock,
)

if TYPE_CHECKING:
    from sealane.client import Lane, Message, MessageBatch, Producer, Transaction, connect
    from sealane.client.embedded import embedded
    from sealane.client.sync import (
        SyncLane,
        SyncMessage,
        SyncMessageBatch,
        SyncProducer,
        SyncTransaction,
        connect_sync,
    )
    from sealane.client.sync.embedded import embedded_sync
    from sealane.delivery.config import Retry
    from sealane.node.receipts import Receipt
    from sealane.security.envelopes import PrivateKey, PublicKey

__all__ = [
    "AlreadyExists",
    "CannotOpen",
    "Closed",
    "CorruptData",
    "DataDirectoryInUse",
    "DeadlineExceeded",
    "ExchangeNotFound",
    "FilterError",
    "Forbidden",
    "FormatTooNew",
    "IncompatibleSchema",
    "InvalidArgument",
    "InvalidBatch",
    "InvalidMessage",
    "InvalidName",
    "InvalidSchema",
    "KeyPinMismatch",
    "KeyUnavailable",
    "Lane",
    "LeaseLost",
    "LimitExceeded",
    "Message",
    "MessageBatch",
    "MissingExtra",
    "ModeConflict",
    "NotFound",
    "PrivateKey",
    "Producer",
    "PublicKey",
    "QueueFull",
    "RateLimited",
    "Receipt",
    "RecipientNotFound",
    "Retry",
    "SchemaMismatch",
    "SchemaNotFound",
    "SealaneError",
    "StagedPartLost",
    "StaleSequence",
    "StorageError",
    "StorageFailed",
    "StorageFull",
    "SubscriptionNotFound",
    "SyncLane",
    "SyncMessage",
    "SyncMessageBatch",
    "SyncProducer",
    "SyncTransaction",
    "TooManyConnections",
    "TopicNotFound",
    "Transaction",
    "TransactionAborted",
    "Unauthenticated",
    "Unavailable",
    "Unroutable",
    "UntrustedNode",
    "WouldBlock",
    "__version__",
    "connect",
    "connect_sync",
    "embedded",
    "embedded_sync",
]

_HOMES = {
    "Lane": "sealane.client",
    "Message": "sealane.client",
    "MessageBatch": "sealane.client",
    "PrivateKey": "sealane.security.envelopes",
    "Producer": "sealane.client",
    "PublicKey": "sealane.security.envelopes",
    "Receipt": "sealane.node.receipts",
    "Retry": "sealane.delivery.config",
    "SyncLane": "sealane.client.sync",
    "SyncMessage": "sealane.client.sync",
    "SyncMessageBatch": "sealane.client.sync",
    "SyncProducer": "sealane.client.sync",
    "SyncTransaction": "sealane.client.sync",
    "Transaction": "sealane.client",
    "connect": "sealane.client",
    "connect_sync": "sealane.client.sync",
    "embedded": "sealane.client.embedded",
    "embedded_sync": "sealane.client.sync.embedded",
}


def __getattr__(name: str) -> Any:
    """Load a part when it is first asked for: `import sealane` itself stays quick."""
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sealane' has no attribute {name!r}")
