"""The status of a node: one answer that says how it is doing, for the command line, the portal and the native door."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sealane._version import __version__
from sealane.engine import Engine
from sealane.node.describe import describe_subscription
from sealane.node.process_usage import memory_bytes, open_files

if TYPE_CHECKING:
    from sealane.node.node import Node
    from sealane.node.topics import Topic

STATUS_TOPICS_MAX = 1_000
"""Rows of topics in one status, the deepest first: one answer stays small, and quick to make."""


class SubscriptionStatus(msgspec.Struct, frozen=True):
    name: str
    mode: str
    depth: int
    """Messages that are not settled."""
    leased: int
    waiting: int
    """For a retry or a delay."""
    dying: int
    """Out of attempts, on their way to the dead letters."""
    consumers: int
    oldest_seconds: float | None
    """How long ago the oldest unsettled message was committed; None if there is none, or its age is not known."""
    delivered_total: int
    acked_total: int
    dead_lettered_total: int
    acked_per_second: float
    """Lately."""


class TopicStatus(msgspec.Struct, frozen=True):
    name: str
    partitions: int
    messages: int
    """In the log, settled ones that are kept for replay too."""
    bytes: int
    """About what they take: their number times the size of one that was published lately."""
    published_total: int
    """Since the node was started; so are the other totals."""
    published_bytes_total: int
    published_per_second: float
    """Lately."""
    depth: int
    """Of its deepest subscription."""
    subscriptions: tuple[SubscriptionStatus, ...]


class NodeStatus(msgspec.Struct, frozen=True):
    version: str
    started: float
    """Seconds since 1970."""
    uptime_seconds: float
    engine: str
    storage_bytes: int
    storage_bytes_max: int | None
    storage_full: bool
    storage_failure: str | None
    memory_bytes: int | None
    open_files: int | None
    connections: dict[str, int]
    """By door."""
    topics_total: int
    messages_total: int
    published_total: int
    acked_total: int
    published_per_second: float
    acked_per_second: float
    leased: int
    consumers: int
    crashes: dict[str, int]
    """By task: how often it crashed since the start."""
    live: bool
    ready: bool
    problems: list[str]
    topics: tuple[TopicStatus, ...]
    """The deepest ones; `topics_total` says how many there are."""


class Health(NamedTuple):
    live: bool
    """False: the process should be ended and started again."""
    ready: bool
    """False: it does not serve everything now; `problems` says why."""
    problems: list[str]


def health(node: Node) -> Health:
    """Whether the node works, for `/healthz` and `/ready`.

    A node whose storage is full is ready, and so is one that reads a partition again: consumers, who free the room, and
    the other partitions go on.
    """
    problems = []
    if node.supervisor.failure is not None:
        error = node.supervisor.failure
        problems.append(f"the node stops: {node.supervisor.failed_task} crashed ({type(error).__name__}); see the log")
    if node.engine.failure is not None:
        problems.append(f"storage takes no writes: {node.engine.failure}")
    elif node.engine.usage().full is not None:
        problems.append(f"storage is full, publishes are refused: {node.engine.usage().full}")
    unsure = [owner.key for topic in node.topics.values() for owner in topic.owners if owner.error is not None]
    if unsure and not problems:
        problems.append(f"{len(unsure)} partitions are being read again from storage, the first is {unsure[0]}")
    live = node.supervisor.failure is None
    return Health(live, live and node.engine.failure is None, problems)


def node_status(node: Node, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
    """How the node is doing now. The rows are of the `topics_max` deepest topics that are not the system's."""
    live, ready, problems = health(node)
    usage = node.engine.usage()
    now_us = node.surroundings.clock()
    now = node.measures.now()
    system = {topic.full_name for topic in node.topics.values() if topic.is_system}
    measures = [topic for name, topic in node.measures.topics.items() if name not in system]
    readers = [reader for topic in measures for reader in topic.subscriptions.values()]
    shown = [topic for topic in node.topics.values() if not topic.is_system]
    deepest = sorted(shown, key=lambda topic: (-topic_depth(topic), topic.full_name))[: max(0, topics_max)]
    return NodeStatus(
        version=__version__,
        started=node.started_us / 1e6,
        uptime_seconds=max(0, now_us - node.started_us) / 1e6,
        engine=_engine_name(node.engine),
        storage_bytes=usage.bytes_used,
        storage_bytes_max=usage.bytes_max,
        storage_full=usage.full is not None,
        storage_failure=None if node.engine.failure is None else str(node.engine.failure),
        memory_bytes=memory_bytes(),
        open_files=open_files(),
        connections={door: count() for door, count in node.measures.connections.items()},
        topics_total=len(shown),
        messages_total=sum(topic_messages(topic) for topic in shown),
        published_total=sum(topic.published for topic in measures),
        acked_total=sum(reader.acked for reader in readers),
        published_per_second=sum(topic.published_rate.per_second(now) for topic in measures),
        acked_per_second=sum(reader.acked_rate.per_second(now) for reader in readers),
        leased=sum(
            len(reader.leases.outstanding)
            for topic in shown
            for owner in topic.owners
            for reader in owner.core.subscriptions.values()
        ),
        consumers=sum(len(topic.attachments) for topic in shown),
        crashes=dict(node.supervisor.crashes),
        live=live,
        ready=ready,
        problems=problems,
        topics=tuple(_topic_status(node, topic, now_us, now) for topic in deepest),
    )


def topic_messages(topic: Topic) -> int:
    return sum(owner.core.visible - owner.core.start for owner in topic.owners)


def topic_bytes(topic: Topic) -> int:
    """About what the topic's messages take."""
    return sum((owner.core.visible - owner.core.start) * owner.message_bytes for owner in topic.owners)


def topic_depth(topic: Topic) -> int:
    """Unsettled messages of the topic's deepest subscription."""
    depths: dict[str, int] = {}
    for owner in topic.owners:
        for name, reader in owner.core.subscriptions.items():
            if not name.startswith("_"):
                depths[name] = depths.get(name, 0) + reader.depth(owner.core.visible)
    return max(depths.values(), default=0)


def oldest_seconds(topic: Topic, subscription: str, now_us: int) -> float | None:
    """How long ago the oldest unsettled message was committed; None if there is none, or its age is not known."""
    oldest_us: int | None = None
    for owner in topic.owners:
        reader = owner.core.subscriptions.get(subscription)
        if reader is not None and reader.settled.floor < owner.core.visible:
            moment = owner.engine.committed_at(owner.key, reader.settled.floor)
            if moment is not None and (oldest_us is None or moment < oldest_us):
                oldest_us = moment
    return None if oldest_us is None else max(0, now_us - oldest_us) / 1e6


def _topic_status(node: Node, topic: Topic, now_us: int, now: float) -> TopicStatus:
    measures = node.measures.topic(topic.full_name)
    names = {name for owner in topic.owners for name in owner.core.subscriptions} | set(topic.groups)
    return TopicStatus(
        name=topic.full_name,
        partitions=len(topic.owners),
        messages=topic_messages(topic),
        bytes=topic_bytes(topic),
        published_total=measures.published,
        published_bytes_total=measures.published_bytes,
        published_per_second=measures.published_rate.per_second(now),
        depth=topic_depth(topic),
        subscriptions=tuple(
            _subscription_status(node, topic, name, now_us, now) for name in sorted(names) if not name.startswith("_")
        ),
    )


def _subscription_status(node: Node, topic: Topic, name: str, now_us: int, now: float) -> SubscriptionStatus:
    described = describe_subscription(topic, name)
    measures = node.measures.topic(topic.full_name).subscription(name)
    return SubscriptionStatus(
        name=name,
        mode=described.config.mode,
        depth=described.depth,
        leased=described.leased,
        waiting=described.waiting,
        dying=described.dying,
        consumers=described.consumers,
        oldest_seconds=oldest_seconds(topic, name, now_us),
        delivered_total=measures.delivered,
        acked_total=measures.acked,
        dead_lettered_total=measures.dead_lettered,
        acked_per_second=measures.acked_rate.per_second(now),
    )


def _engine_name(engine: Engine) -> str:
    return type(engine).__name__.removesuffix("Engine").lower()
