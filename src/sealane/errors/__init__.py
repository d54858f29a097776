"""Every error Sealane raises on purpose.

One tree under `SealaneError`; a narrower class exists where a caller would do something different about it.
Each message says what was asked, what is wrong and what to do; typed fields carry the same for programs.
"""

from __future__ import annotations

from sealane.errors.asking import (
    BadSignature,
    BrokenPlugin,
    Forbidden,
    PortTaken,
    RenewalTooEarly,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
    UntrustedNode,
    WebhookRefused,
)
from sealane.errors.base import (
    SealaneError,
)
from sealane.errors.delivering import (
    LeaseLost,
    QueueFull,
    RateLimited,
    StagedPartLost,
    StaleSequence,
    TransactionAborted,
)
from sealane.errors.ending import (
    Closed,
    DeadlineExceeded,
    WouldBlock,
)
from sealane.errors.envelopes import (
    CannotOpen,
    KeyPinMismatch,
)
from sealane.errors.found import (
    AccountNotFound,
    AlreadyExists,
    AuthorityNotFound,
    CertificateNotFound,
    ExchangeNotFound,
    GrantNotFound,
    KeyNotFound,
    ModeConflict,
    NotFound,
    QuotaNotFound,
    RecipientNotFound,
    SchemaNotFound,
    SubscriptionNotFound,
    TopicNotFound,
    Unroutable,
    UserNotFound,
    WebhookNotFound,
)
from sealane.errors.sent import (
    FilterError,
    IncompatibleSchema,
    InvalidArgument,
    InvalidBatch,
    InvalidMessage,
    InvalidName,
    InvalidSchema,
    InvalidSettings,
    LimitExceeded,
    MissingExtra,
    SchemaMismatch,
)
from sealane.errors.storage import (
    CorruptData,
    DataDirectoryInUse,
    Fenced,
    FormatTooNew,
    KeyUnavailable,
    OffsetMismatch,
    StorageError,
    StorageFailed,
    StorageFull,
    VersionMismatch,
)

__all__ = [
    "AccountNotFound",
    "AlreadyExists",
    "AuthorityNotFound",
    "BadSignature",
    "BrokenPlugin",
    "CannotOpen",
    "CertificateNotFound",
    "Closed",
    "CorruptData",
    "DataDirectoryInUse",
    "DeadlineExceeded",
    "ExchangeNotFound",
    "Fenced",
    "FilterError",
    "Forbidden",
    "FormatTooNew",
    "GrantNotFound",
    "IncompatibleSchema",
    "InvalidArgument",
    "InvalidBatch",
    "InvalidMessage",
    "InvalidName",
    "InvalidSchema",
    "InvalidSettings",
    "KeyNotFound",
    "KeyPinMismatch",
    "KeyUnavailable",
    "LeaseLost",
    "LimitExceeded",
    "MissingExtra",
    "ModeConflict",
    "NotFound",
    "OffsetMismatch",
    "PortTaken",
    "QueueFull",
    "QuotaNotFound",
    "RateLimited",
    "RecipientNotFound",
    "RenewalTooEarly",
    "SchemaMismatch",
    "SchemaNotFound",
    "SealaneError",
    "StagedPartLost",
    "StaleSequence",
    "StorageError",
    "StorageFailed",
    "StorageFull",
    "SubscriptionNotFound",
    "TooManyConnections",
    "TopicNotFound",
    "TransactionAborted",
    "Unauthenticated",
    "Unavailable",
    "Unroutable",
    "UntrustedNode",
    "UserNotFound",
    "VersionMismatch",
    "WebhookNotFound",
    "WebhookRefused",
    "WouldBlock",
]

for _name in __all__:
    # Tracebacks and pickles name them as users do.
    globals()[_name].__module__ = __name__
