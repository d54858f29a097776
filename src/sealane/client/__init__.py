"""The client: lanes, consumers, producers, transactions, and the broker inside the process.

That broker is a whole node, and in a module of its own (`sealane.client.embedded`): who connects to a node elsewhere
does not load it.
"""

from sealane.client.lane import Lane
from sealane.client.message import Message, MessageBatch
from sealane.client.producer import Producer
from sealane.client.remote import connect
from sealane.client.transaction import Transaction

__all__ = ["Lane", "Message", "MessageBatch", "Producer", "Transaction", "connect"]
