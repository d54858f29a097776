"""All that a client can say: a line is one command, its words stand between spaces, and a message's JSON comes last."""

from __future__ import annotations

from typing import NamedTuple

from sealane.errors import InvalidArgument
from sealane.wire.cipher.message import check_message_id

SHOWN_CHARS = 40
"""Of a word that is no command, when it is told that it is none."""

USAGES = {
    "declare_queue": "declare_queue QUEUE",
    "declare_exchange": "declare_exchange EXCHANGE",
    "bind": "bind QUEUE EXCHANGE KEY",
    "publish": "publish EXCHANGE KEY {JSON}",
    "publish_batch": "publish_batch EXCHANGE KEY [{JSON}, …]",
    "consume": "consume QUEUE",
    "fetch": "fetch QUEUE",
    "ack": "ack MESSAGE_ID",
}
"""Every command, with its words."""


class DeclareQueue(NamedTuple):
    queue: str


class DeclareExchange(NamedTuple):
    exchange: str


class Bind(NamedTuple):
    queue: str
    exchange: str
    routing_key: str


class Publish(NamedTuple):
    exchange: str
    routing_key: str
    text: bytes
    """A message's JSON, not looked into yet."""


class PublishBatch(NamedTuple):
    exchange: str
    routing_key: str
    text: bytes
    """A JSON list of messages, not looked into yet."""


class Consume(NamedTuple):
    queue: str


class Fetch(NamedTuple):
    queue: str


class Ack(NamedTuple):
    message_id: str


Command = DeclareQueue | DeclareExchange | Bind | Publish | PublishBatch | Consume | Fetch | Ack


def read_command(line: bytes) -> Command | None:
    """The command of a line; None for a blank one. Raises `InvalidArgument`, and `InvalidMessage` for an id."""
    words = line.split(None, 1)
    if not words:
        return None
    try:
        line.decode()
        name = words[0].decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("line", f"is not UTF-8: byte {error.start:,} of it cannot be read") from None
    if name not in USAGES:
        shown = name if len(name) <= SHOWN_CHARS else f"{name[:SHOWN_CHARS]}…"
        raise InvalidArgument("command", f"there is no {shown!r}; there are {', '.join(USAGES)}")
    return _read(name, words[1] if len(words) > 1 else b"")


def _read(name: str, rest: bytes) -> Command:
    match name:
        case "declare_queue":
            return DeclareQueue(*_words(name, rest, 1))
        case "declare_exchange":
            return DeclareExchange(*_words(name, rest, 1))
        case "bind":
            return Bind(*_words(name, rest, 3))
        case "publish":
            return Publish(*_words_and_text(name, rest))
        case "publish_batch":
            return PublishBatch(*_words_and_text(name, rest))
        case "consume":
            return Consume(*_words(name, rest, 1))
        case "fetch":
            return Fetch(*_words(name, rest, 1))
        case _:
            [message_id] = _words(name, rest, 1)
            check_message_id(message_id)
            return Ack(message_id)


def _words(name: str, rest: bytes, count: int) -> list[str]:
    words = rest.split(None, count)
    if len(words) != count:
        what = "one word must follow" if count == 1 else f"{count} words must follow"
        raise InvalidArgument(name, f"{what}, and nothing else; it is `{USAGES[name]}`")
    return [word.decode() for word in words]


def _words_and_text(name: str, rest: bytes) -> tuple[str, str, bytes]:
    words = rest.split(None, 2)
    if len(words) != 3:
        raise InvalidArgument(name, f"an exchange, a key and JSON must follow; it is `{USAGES[name]}`")
    exchange, routing_key, text = words
    return exchange.decode(), routing_key.decode(), text.rstrip()
