"""All that the node says: a line for each command, and a line for each message that it pushes."""

from __future__ import annotations

from collections.abc import Iterable

ERROR_CHARS_MAX = 1_000
"""Of what an error says: what clients sent may be repeated in it."""

QUEUE_DECLARED = b"Queue declared\n"
EXCHANGE_DECLARED = b"Exchange declared\n"
QUEUE_BOUND = b"Queue bound\n"


def acknowledged(message_ids: Iterable[str]) -> bytes:
    """These are durable: a line for each."""
    return "".join([f"ACK {message_id}\n" for message_id in message_ids]).encode()


def consuming(queue: str) -> bytes:
    return f"Consuming {queue}\n".encode()


def message(message_id: str, text: bytes) -> bytes:
    """`text` is JSON without a line's end in it."""
    return b"Message: %b %b\n" % (message_id.encode(), text)


def no_message(queue: str) -> bytes:
    return f"No message in {queue}\n".encode()


def confirmed(message_id: str) -> bytes:
    """That it is acknowledged is durable."""
    return f"ACK_CONFIRMED {message_id}\n".encode()


def error(text: str) -> bytes:
    """One line, whatever the text is."""
    line = " ".join(text.split())
    if len(line) > ERROR_CHARS_MAX:
        line = f"{line[: ERROR_CHARS_MAX - 1]}…"
    return f"Error: {line}\n".encode(errors="replace")
