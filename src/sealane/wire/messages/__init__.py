"""Everything two peers can say to each other. On the wire each is a msgpack array that begins with its tag.

Fields are only ever added at the end, with a default: a peer ignores those that it does not know.

`call` numbers a request within its connection, from 1; the answer carries the same number. Requests are pipelined:
answers may come in another order. Offsets travel as ascending runs, `[start, stop, start, stop, …]`, half-open.
"""

from __future__ import annotations

from sealane.wire.messages.answers import (
    Answer,
    Done,
    Progress,
    Refused,
)
from sealane.wire.messages.consuming import (
    Ack,
    Attach,
    Attached,
    Credit,
    Deliver,
    Detach,
    Ended,
    Extend,
    Leave,
    Nack,
    Release,
    Revoke,
    Settle,
)
from sealane.wire.messages.life import (
    PROTOCOL_VERSION,
    Goodbye,
    Hello,
    LimitsOffer,
    Ping,
    Pong,
    Welcome,
)
from sealane.wire.messages.managing import (
    Administer,
    Backup,
    Bind,
    ConfigureTopic,
    CreateTopic,
    DeclareExchange,
    DeleteTopic,
    DescribeTopic,
    ListExchanges,
    ListTopics,
    Redrive,
    Seek,
    Status,
    Unbind,
    Unsubscribe,
)
from sealane.wire.messages.publishing import (
    DropStaged,
    PlacedShare,
    Publish,
    Published,
    PublishStaged,
    PublishTo,
    Routed,
    Stage,
    Transact,
)
from sealane.wire.messages.reading import (
    Advance,
    Browse,
    Browsed,
    DescribeLogs,
    HistoryRead,
    ReadHistory,
)
from sealane.wire.messages.shapes import (
    LeaseRuns,
    Runs,
    StartPoint,
)

__all__ = [
    "Ack",
    "Administer",
    "Advance",
    "Answer",
    "AnyMessage",
    "Attach",
    "Attached",
    "Backup",
    "Bind",
    "Browse",
    "Browsed",
    "ConfigureTopic",
    "CreateTopic",
    "Credit",
    "DeclareExchange",
    "DeleteTopic",
    "Deliver",
    "DescribeLogs",
    "DescribeTopic",
    "Detach",
    "Done",
    "DropStaged",
    "Ended",
    "Extend",
    "Goodbye",
    "Hello",
    "HistoryRead",
    "LeaseRuns",
    "Leave",
    "Life",
    "LimitsOffer",
    "ListExchanges",
    "ListTopics",
    "Nack",
    "News",
    "Note",
    "PROTOCOL_VERSION",
    "Ping",
    "PlacedShare",
    "Pong",
    "Progress",
    "Publish",
    "PublishStaged",
    "PublishTo",
    "Published",
    "ReadHistory",
    "Redrive",
    "Refused",
    "Release",
    "Reply",
    "Request",
    "Revoke",
    "Routed",
    "Runs",
    "Seek",
    "Settle",
    "Stage",
    "StartPoint",
    "Status",
    "ToClient",
    "ToNode",
    "Transact",
    "Unbind",
    "Unsubscribe",
    "Welcome",
]

Request = (
    Publish
    | PublishTo
    | Transact
    | Stage
    | PublishStaged
    | DropStaged
    | Attach
    | Ack
    | Nack
    | Extend
    | Detach
    | CreateTopic
    | ConfigureTopic
    | DeleteTopic
    | ListTopics
    | DescribeTopic
    | Unsubscribe
    | Seek
    | Advance
    | Redrive
    | DeclareExchange
    | Bind
    | Unbind
    | ListExchanges
    | Browse
    | ReadHistory
    | DescribeLogs
    | Status
    | Backup
    | Administer
)
"""What a client asks and a node answers."""
Note = Credit | Settle | Release | Leave
"""What a client tells without waiting."""
Reply = Done | Answer | Refused | Published | Routed | Attached | Browsed | HistoryRead
"""What ends a request."""
News = Deliver | Revoke | Ended | Progress
"""What a node tells without being asked, or before it has answered."""
Life = Hello | Welcome | Ping | Pong | Goodbye

ToNode = Hello | Ping | Pong | Goodbye | Request | Note
ToClient = Welcome | Ping | Pong | Goodbye | Reply | News
AnyMessage = ToNode | ToClient
