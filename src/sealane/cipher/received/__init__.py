"""Where a receiver keeps what it has decrypted: in a file that has each message once, and is never torn."""

from sealane.cipher.received.entry import Entry
from sealane.cipher.received.opening import open_received
from sealane.cipher.received.received_file import ReceivedFile

__all__ = ["Entry", "ReceivedFile", "open_received"]
