"""The blocking client, for threads and scripts: the names of the asynchronous one, without `await`.

`embedded_sync` is in a module of its own, as `embedded` is: a node comes with it.
"""

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
]

connect_sync = blocking_opener(
    connect,
    """A lane to a node, for threads and scripts: `with sealane.connect_sync("sealane://127.0.0.1:7070") as lane:`.

    As `sealane.connect`, without `await`. Any number of threads may use the lane.
    """,
)
