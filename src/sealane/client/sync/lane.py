"""A lane whose calls block, for threads and scripts: the names of `Lane`, without `await`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sealane.client.consumer import BatchConsumption, MessageConsumption
from sealane.client.lane import Lane
from sealane.client.sealing import SealFor
from sealane.client.sync.consumer import SyncBatchConsumption, SyncMessageConsumption
from sealane.client.sync.portal import Portal
from sealane.client.sync.producer import SyncProducer
from sealane.client.sync.transaction import SyncTransaction
from sealane.errors import Closed

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[Lane, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncLane, P], R]:
    """The same call, for one who waits."""

    @wraps(method)
    def call(self: SyncLane, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.portal.call(method, self.lane, *args, **kwargs)

    return call


def _messages(
    method: Callable[Concatenate[Lane, P], MessageConsumption],
) -> Callable[Concatenate[SyncLane, P], SyncMessageConsumption]:
    @wraps(method)
    def call(self: SyncLane, /, *args: P.args, **kwargs: P.kwargs) -> SyncMessageConsumption:
        consumption = self.portal.run(method, self.lane, *args, **kwargs)
        return SyncMessageConsumption(self.portal, consumption)

    return call


def _batches(
    method: Callable[Concatenate[Lane, P], BatchConsumption],
) -> Callable[Concatenate[SyncLane, P], SyncBatchConsumption]:
    @wraps(method)
    def call(self: SyncLane, /, *args: P.args, **kwargs: P.kwargs) -> SyncBatchConsumption:
        consumption = self.portal.run(method, self.lane, *args, **kwargs)
        return SyncBatchConsumption(self.portal, consumption)

    return call


class SyncLane:
    """Made by `sealane.connect_sync` or `sealane.embedded_sync`. Use it in `with`, or `open` and `close` it.

    Any number of threads may use it. A thread of its own runs the event loop that everything happens on; callbacks,
    such as `progress` of `redrive`, are called there.
    """

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[Lane]]) -> None:
        self.portal: Portal[Lane] = Portal(open)
        self._lane: Lane | None = None

    @property
    def lane(self) -> Lane:
        """The lane that it stands for; its methods run on the event loop's thread alone."""
        if self._lane is None:
            raise Closed("the lane is not open yet: use it in a `with` block, or call open()")
        return self._lane

    # --- publishing ---------------------------------------------------------------------------------------------------

    publish = _blocking(Lane.publish)
    publish_many = _blocking(Lane.publish_many)
    publish_to = _blocking(Lane.publish_to)

    def producer(self, topic: str, *, seal_for: SealFor | None = None) -> SyncProducer:
        """A pipelined producer: `with lane.producer("orders") as producer: producer.send(b"...")`."""
        lane = self.lane
        return SyncProducer(self.portal, self.portal.run(lane.producer, topic, seal_for=seal_for), lane.outgoing)

    def transaction(self, id: str) -> SyncTransaction:
        """Publishes and acks that become visible together, once under `id`."""
        return SyncTransaction(self.portal, self.portal.run(self.lane.transaction, id))

    # --- consuming ----------------------------------------------------------------------------------------------------

    consume = _messages(Lane.consume)
    consume_batches = _batches(Lane.consume_batches)

    # --- topics, subscriptions, exchanges -----------------------------------------------------------------------------

    def create_topic(self, name: str, *, partitions: int = 1, **config: Any) -> None:
        """Make sure that the topic exists; `config` is as in `TopicConfig`. Raises `AlreadyExists` if it differs."""
        self.portal.call(self.lane.create_topic, name, partitions=partitions, **config)

    def configure_topic(self, name: str, **changes: Any) -> None:
        self.portal.call(self.lane.configure_topic, name, **changes)

    delete_topic = _blocking(Lane.delete_topic)
    topics = _blocking(Lane.topics)
    unsubscribe = _blocking(Lane.unsubscribe)
    seek = _blocking(Lane.seek)
    describe_topic = _blocking(Lane.describe_topic)
    browse = _blocking(Lane.browse)
    history = _blocking(Lane.history)
    logs = _blocking(Lane.logs)
    advance = _blocking(Lane.advance)
    stage = _blocking(Lane.stage)
    publish_staged = _blocking(Lane.publish_staged)
    drop_staged = _blocking(Lane.drop_staged)
    redrive = _blocking(Lane.redrive)
    declare_exchange = _blocking(Lane.declare_exchange)
    bind = _blocking(Lane.bind)
    unbind = _blocking(Lane.unbind)
    exchanges = _blocking(Lane.exchanges)
    status = _blocking(Lane.status)
    backup = _blocking(Lane.backup)
    register_key = _blocking(Lane.register_key)
    public_keys = _blocking(Lane.public_keys)

    def administer(
        self,
        command: str,
        *,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
        **arguments: Any,
    ) -> Any:
        """Give the node a command of its administration, such as `grant.add`; see `Lane.administer`."""
        return self.portal.call(self.lane.administer, command, progress=progress, timeout=timeout, **arguments)

    # --- life ---------------------------------------------------------------------------------------------------------

    def open(self) -> Self:
        """Start its thread and connect. Raises what `async with` would raise."""
        self._lane = self.portal.open()
        return self

    def close(self) -> None:
        """End the consumers: fetched messages go back, and so do those handed out and not answered. Idempotent."""
        self.portal.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.portal.close((kind, error, trace))

    def __del__(self) -> None:
        if self._lane is not None and self.portal.problem is None:
            problem = f"unclosed {self!r}: use it in a `with` block, or close() it"
            warnings.warn(problem, ResourceWarning, stacklevel=2, source=self)
            self.portal.abandon()


def blocking_opener(open: Callable[P, AbstractAsyncContextManager[Lane]], doc: str) -> Callable[P, SyncLane]:
    """The blocking twin of a function that opens a lane, with the same options."""

    @wraps(open)
    def opener(*args: P.args, **kwargs: P.kwargs) -> SyncLane:
        manager = open(*args, **kwargs)  # Here, so that an impossible option is refused here.
        return SyncLane(lambda: manager)

    opener.__name__ = opener.__qualname__ = f"{open.__name__}_sync"
    opener.__doc__ = doc
    return opener
