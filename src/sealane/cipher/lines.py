"""The lines of CipherMQ's protocol, as a client writes and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sealane.cipher.errors import UnexpectedAnswer
from sealane.errors import InvalidArgument
from sealane.wire.cipher import replies
from sealane.wire.cipher.message import EncryptedMessage

_MESSAGE, _ERROR = b"Message: ", "Error:"


class Command(NamedTuple):
    """A line to send, and how errors call it: what it carries is not repeated."""

    told: str
    line: bytes
    answer: str = ""
    """What comes if it was done; empty where that has a message's id in it."""


class Pushed(NamedTuple):
    """A message as the broker pushes it, not looked into yet."""

    message_id: str
    text: bytes
    """Its JSON."""


def declare_queue(queue: str) -> Command:
    return _command("declare_queue", _word("queue", queue), answer=replies.QUEUE_DECLARED)


def declare_exchange(exchange: str) -> Command:
    return _command("declare_exchange", _word("exchange", exchange), answer=replies.EXCHANGE_DECLARED)


def bind(queue: str, exchange: str, routing_key: str) -> Command:
    words = _word("queue", queue), _word("exchange", exchange), _word("routing key", routing_key)
    return _command("bind", *words, answer=replies.QUEUE_BOUND)


def declare(queue: str, exchange: str, routing_key: str) -> list[Command]:
    """Both of them, bound to each other."""
    return [declare_exchange(exchange), declare_queue(queue), bind(queue, exchange, routing_key)]


def consume(queue: str) -> Command:
    return _command("consume", _word("queue", queue), answer=replies.consuming(queue))


def publish(exchange: str, routing_key: str, messages: Sequence[EncryptedMessage]) -> Command:
    """One line for all of them: `publish` for one, `publish_batch` for several."""
    is_one = len(messages) == 1
    name = "publish" if is_one else "publish_batch"
    told = f"{name} {_word('exchange', exchange)} {_word('routing key', routing_key)}"
    written = b",".join(message.written() for message in messages)
    return Command(told, b"%s %s\n" % (told.encode(), written if is_one else b"[" + written + b"]"))


def acknowledge(message_id: str) -> Command:
    return _command("ack", message_id)


def acknowledged_of(reply: str) -> str | None:
    """The id in `ACK <id>`, which a sender waits for; None if it is another reply."""
    return _after("ACK ", reply)


def confirmed_of(reply: str) -> str | None:
    """The id in `ACK_CONFIRMED <id>`, which a receiver waits for; None if it is another reply."""
    return _after("ACK_CONFIRMED ", reply)


def problem_of(reply: str) -> str | None:
    """What an `Error:` says; None if it is another reply."""
    return _after(_ERROR, reply)


def read_line(line: bytes) -> Pushed | str:
    """A pushed message, or a reply to a command. Raises `UnexpectedAnswer` for what is neither."""
    if line.startswith(_MESSAGE):
        message_id, _, text = line[len(_MESSAGE) :].partition(b" ")
        if message_id and text:
            return Pushed(message_id.decode(errors="replace"), text)
        raise UnexpectedAnswer("the broker pushed a message without its id or its content")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise UnexpectedAnswer("the broker sent a line that is not UTF-8") from None


def _command(name: str, *words: str, answer: bytes = b"") -> Command:
    told = " ".join([name, *words])
    return Command(told, f"{told}\n".encode(), answer.decode().rstrip())


def _word(what: str, text: str) -> str:
    """As it can stand between spaces: one with a line's end in it would be two commands."""
    if not text or not text.isprintable() or any(character.isspace() for character in text):
        raise InvalidArgument(what, f"{text!r} is empty, or has a space or a character that cannot be printed")
    return text


def _after(start: str, reply: str) -> str | None:
    return reply.removeprefix(start).strip() if reply.startswith(start) else None
