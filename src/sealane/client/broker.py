"""What a lane needs of a broker, be it in this process (`node.session.Session`) or at the end of a wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.engine import BackupReport, Stored
from sealane.engine.backup_report import Progress
from sealane.message import Batch, Limits
from sealane.node.consumers import Consumer
from sealane.node.describe import TopicDescription
from sealane.node.history import HISTORY_BYTES_MAX, History
from sealane.node.logs import TopicLog
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveReport, RedriveWish
from sealane.node.starts import Start
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus
from sealane.node.surroundings import Surroundings
from sealane.routing.exchanges import Exchange, ExchangeKind

Landed = Callable[[Receipts | None, BaseException | None], None]
"""Told the receipts of a batch once it is durable, or why there are none."""

Unhandled = list[tuple[int, int, BitMap64]]
"""Leased messages that were not handed out: (partition, lease, offsets)."""


def _nothing() -> Unhandled:
    return []


@dataclass(slots=True, eq=False)
class LaneConsumer(Consumer):
    """A consumer as a lane has it: beside what the node tells it, it hears of the loss of its connection."""

    lost: Callable[[], Unhandled] = _nothing
    """Told when the node took back everything it had leased to this consumer; returns what was not handed out."""


class Hold(Protocol):
    """A consumer's hold on a subscription: its credit, its answers, and how it leaves. See `node.attachment`."""

    def add_credit(self, messages: int) -> None: ...

    async def ack(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """Returns when it is durable; raises `LeaseLost` if one of them was neither leased nor settled."""

    def settle(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """An ack that nobody waits for."""

    async def nack(
        self,
        partition: int,
        lease: int,
        offsets: BitMap64 | None = None,
        *,
        delay: float | None = None,
        reason: str | None = None,
        confirm: bool = False,
    ) -> None: ...

    async def extend(self, partition: int, lease: int, seconds: float) -> int:
        """Returns the new deadline in µs since 1970; raises `LeaseLost` if there is nothing to extend."""

    def release(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        """Give back what was not handled, without counting an attempt."""

    def leave(self, unhandled: Sequence[tuple[int, int, BitMap64]] = ()) -> None:
        """Take no more, and give these back: (partition, lease, offsets)."""

    async def detach(self) -> None:
        """Leave; what was handed out may still be answered."""

    async def end(self) -> None:
        """What is still leased goes back, and counts as an attempt."""


@runtime_checkable
class DistantHold(Hold, Protocol):
    """A hold whose node is elsewhere, and may not answer."""

    def settle_together(self, acks: Mapping[tuple[int, int], BitMap64]) -> None:
        """The same as `settle` for each (partition, lease), in as few messages as can be."""

    def detach_at_once(self) -> None:
        """Tell the node, and do not wait for its word."""


HoldT = TypeVar("HoldT", bound=Hold)


class Broker(Protocol[HoldT]):
    """Names are as users write them. Whatever waits is bounded by the caller with a timeout."""

    @property
    def limits(self) -> Limits: ...
    @property
    def surroundings(self) -> Surroundings: ...

    def publish(self, topic: str, batch: Batch) -> asyncio.Future[Receipts]:
        """Begins in this moment; resolves when durable. Batches of one topic are stored in the order of the calls."""

    def hand_over(self, topic: str, batch: Batch, landed: Landed) -> None:
        """The same for who needs no future: `landed` is called once, maybe before this returns; nothing is raised."""

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> Mapping[str, Receipts]: ...
    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[HoldT, int, int, BitMap64]],
    ) -> bool: ...
    async def stage(self, topic: str, batch: Batch) -> None: ...
    async def publish_staged(self, transaction: str, parts: Sequence[tuple[bytes, int]], epoch: int | None) -> bool: ...
    async def drop_staged(self, parts: Sequence[bytes]) -> None: ...
    async def attach(
        self,
        topic: str,
        subscription: str,
        config: SubscriptionConfig,
        start: Start,
        consumer: LaneConsumer,
        *,
        keep_retry: bool = False,
    ) -> HoldT: ...
    async def browse(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> list[Stored]: ...

    async def history(
        self,
        topic: str,
        partition: int,
        entry: int,
        *,
        bytes_max: int = HISTORY_BYTES_MAX,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> History: ...

    async def logs(self, topics: Sequence[str], at: datetime | None = None) -> list[TopicLog]: ...
    async def advance(self, topic: str, subscription: str, positions: Mapping[int, int]) -> None: ...

    async def create_topic(self, name: str, config: Mapping[str, Any]) -> None: ...
    async def configure_topic(self, name: str, changes: Mapping[str, Any]) -> None: ...
    async def delete_topic(self, name: str) -> None: ...
    async def topics(self) -> list[str]: ...
    async def describe_topic(self, name: str) -> TopicDescription: ...
    async def unsubscribe(self, topic: str, subscription: str) -> None: ...
    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]: ...
    async def redrive(
        self,
        topic: str,
        subscription: str,
        wish: RedriveWish,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport: ...
    async def declare_exchange(self, name: str, kind: ExchangeKind) -> None: ...
    async def bind(self, exchange: str, topic: str, routing_key: str) -> None: ...
    async def unbind(self, exchange: str, topic: str, routing_key: str) -> None: ...
    async def exchanges(self) -> Mapping[str, Exchange]: ...
    async def backup(
        self, target: str, *, include_key: bool = True, progress: Progress | None = None
    ) -> BackupReport: ...
    async def administer(self, command: str, arguments: Mapping[str, Any], progress: Progress | None = None) -> Any: ...
    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus: ...
