"""What is asked of the system for the connections that carry frames, beyond what an event loop asks of it."""

from sealane.sockets.pacing import prepare
from sealane.sockets.sending import SendsTogether, write_pieces

__all__ = ["SendsTogether", "prepare", "write_pieces"]
