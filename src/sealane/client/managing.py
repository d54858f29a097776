"""Topics, subscriptions and exchanges, and the node itself: what a lane can ask beside publishing and consuming."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyroaring import BitMap64

from sealane.client.asking import Asking
from sealane.engine import BackupReport
from sealane.node.describe import TopicDescription
from sealane.node.redrive import RedriveReport, RedriveWish
from sealane.node.starts import Start
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus
from sealane.routing.exchanges import Exchange, ExchangeKind


class Managing(Asking):
    """A lane's commands; see `Lane`."""

    async def create_topic(self, name: str, *, partitions: int = 1, **config: Any) -> None:
        """Make sure that the topic exists; `config` is as in `TopicConfig`. Raises `AlreadyExists` if it differs."""
        self._check_open()
        await self._asked(self._broker.create_topic(name, {"partitions": partitions, **config}), "create_topic")

    async def configure_topic(self, name: str, **changes: Any) -> None:
        self._check_open()
        await self._asked(self._broker.configure_topic(name, changes), "configure_topic")

    async def delete_topic(self, name: str) -> None:
        self._check_open()
        await self._asked(self._broker.delete_topic(name), "delete_topic")

    async def topics(self) -> list[str]:
        """The names of all topics but the system's, in order."""
        self._check_open()
        return await self._asked(self._broker.topics(), "topics")

    async def unsubscribe(self, topic: str, subscription: str) -> None:
        """Delete the subscription, and with it its position."""
        self._check_open()
        await self._asked(self._broker.unsubscribe(topic, subscription), "unsubscribe")

    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]:
        """Let the subscription begin again from `start`. Returns the offsets by partition."""
        self._check_open()
        return await self._asked(self._broker.seek(topic, subscription, start), "seek")

    async def describe_topic(self, name: str) -> TopicDescription:
        """Its configuration, partitions and subscriptions, as they are now."""
        self._check_open()
        return await self._asked(self._broker.describe_topic(name), "describe_topic")

    async def redrive(
        self,
        topic: str,
        subscription: str,
        *,
        filter: str | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        messages_max: int | None = None,
        offsets: Mapping[int, BitMap64] | None = None,
        progress: Callable[[int], None] | None = None,
        timeout: float | None = None,
    ) -> RedriveReport:
        """Send a subscription's dead letters back to it, and to it alone; `rate` is in messages a second.

        `offsets` of the dead-letter topic, by partition, choose among them; what is back already is passed over.
        `progress` is told how many are back. It takes as long as it takes, unless `timeout` says otherwise.
        """
        self._check_open()
        wish = RedriveWish(matching=filter, dry_run=dry_run, rate=rate, messages_max=messages_max, offsets=offsets)
        redriving = self._broker.redrive(topic, subscription, wish, progress)
        return await redriving if timeout is None else await self._within(redriving, timeout, "redrive")

    async def declare_exchange(self, name: str, kind: ExchangeKind = "direct") -> None:
        """Make sure that the exchange exists: `direct`, `topic` (patterns with `*` and `#`) or `fanout`."""
        self._check_open()
        await self._asked(self._broker.declare_exchange(name, kind), "declare_exchange")

    async def bind(self, exchange: str, topic: str, routing_key: str = "") -> None:
        self._check_open()
        await self._asked(self._broker.bind(exchange, topic, routing_key), "bind")

    async def unbind(self, exchange: str, topic: str, routing_key: str = "") -> None:
        self._check_open()
        await self._asked(self._broker.unbind(exchange, topic, routing_key), "unbind")

    async def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges with their kinds and bindings, by name."""
        self._check_open()
        return await self._asked(self._broker.exchanges(), "exchanges")

    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
        """How the node is doing, with a row for each of its deepest topics."""
        self._check_open()
        return await self._asked(self._broker.status(topics_max=topics_max), "status")

    async def backup(
        self,
        target: str,
        *,
        include_key: bool = True,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
    ) -> BackupReport:
        """Let the node copy all that is durable to `target`, a new directory of its machine, while it serves.

        `progress` is told the bytes done and the bytes there are. It takes as long as it takes, unless `timeout` says
        otherwise; `sealane log restore` makes a data directory of it.
        """
        self._check_open()
        backing_up = self._broker.backup(target, include_key=include_key, progress=progress)
        return await backing_up if timeout is None else await self._within(backing_up, timeout, "backup")

    async def administer(
        self,
        command: str,
        *,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
        **arguments: Any,
    ) -> Any:
        """Give the node a command of its administration, such as `grant.add`; `sealane --help` has them by their names.

        What takes long, and tells its `progress`, takes as long as it takes unless `timeout` says otherwise.
        """
        self._check_open()
        doing = self._broker.administer(command, arguments, progress)
        if progress is not None and timeout is None:
            return await doing
        return await self._within(doing, timeout, command)
