"""Topics, subscriptions, exchanges, and the node itself."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.wire.messages.shapes import Numbered, Runs, StartPoint


class CreateTopic(Numbered, tag=50):
    topic: str
    config: dict[str, Any]


class ConfigureTopic(Numbered, tag=51):
    topic: str
    changes: dict[str, Any]


class DeleteTopic(Numbered, tag=52):
    topic: str


class ListTopics(Numbered, tag=53):
    """Answered with their full names, in order."""


class DescribeTopic(Numbered, tag=54):
    topic: str


class Unsubscribe(Numbered, tag=60):
    topic: str
    subscription: str


class Seek(Numbered, tag=61):
    """Answered with the offsets by partition."""

    topic: str
    subscription: str
    start: StartPoint


class Redrive(Numbered, tag=62):
    """Answered with `[dry_run, messages, {reason: messages}]`, after any number of `Progress`."""

    topic: str
    subscription: str
    filter: str | None = None
    dry_run: bool = False
    rate: float | None = None
    messages_max: int | None = None
    offsets: dict[int, Runs] | None = None
    """Of the dead-letter topic, by partition."""


class DeclareExchange(Numbered, tag=70):
    exchange: str
    kind: str = "direct"


class Bind(Numbered, tag=71):
    exchange: str
    topic: str
    routing_key: str


class Unbind(Numbered, tag=72):
    exchange: str
    topic: str
    routing_key: str


class ListExchanges(Numbered, tag=73):
    """Answered with `{name: [kind, [[routing key, topic], …]]}`."""


class Status(Numbered, tag=90):
    """Answered with the node's status."""

    topics_max: int = 1_000


class Backup(Numbered, tag=91):
    """Copy the node's data into a directory of the node's machine. Answered with a report, after `Progress`."""

    target: str
    include_key: bool = True


class Administer(Numbered, tag=92):
    """A command of the node's administration, by name. Answered with its outcome, after any number of `Progress`."""

    command: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
