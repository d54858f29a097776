"""The blocking client, for threads and scripts: the names of the asynchronous one, without `await`."""

from sealane.client.embedded import embedded
from sealane.client.remote import connect
from sealane.client.sync.consumer import SyncBatchConsumption, SyncMessageConsumption
from sealane.client.sync.lane import SyncLane, blocking_opener
from sealane.client.sync.message import SyncMessage, SyncMessageBatch
from sealane.client.sync.producer import SyncProducer
from sealane.client.sync.transaction import SyncTransaction

__all__ = [
    "SyncBatchConsumption",
    "SyncLane",
    "SyncMessage",
    "SyncMessageBatch",
    "SyncMessageConsumption",
    "SyncProducer",
    "SyncTransaction",
    "connect_sync",
    "embedded_sync",
]

connect_sync = blocking_opener(
    connect,
    """A lane to a node, for threads and scripts: `with sealane.connect_sync("sealane://127.0.0.1:7070") as lane:`.

    As `sealane.connect`, without `await`. Any number of threads may use the lane.
    """,
)

embedded_sync = blocking_opener(
    embedded,
    """A broker inside this process, for threads and scripts: `with sealane.embedded_sync("data") as lane:`.

    As `sealane.embedded`, without `await`.
    """,
)
