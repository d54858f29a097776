"""The broker at the end of a wire: requests for what a lane asks, some of which may be repeated after a lost link."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, TypeVar

import msgspec
from pyroaring import BitMap64

from sealane.client.broker import Landed, LaneConsumer
from sealane.client.remote.deliveries import receipts_of, stored_of
from sealane.client.remote.hold import RemoteHold
from sealane.client.remote.link import LinkLost
from sealane.client.remote.pool import Pool
from sealane.client.remote.publishes import Publishes
from sealane.client.remote.requests import checked
from sealane.delivery.config import SubscriptionConfig, check_config
from sealane.engine import BackupReport, Stored
from sealane.engine.backup_report import Progress
from sealane.errors import InvalidArgument, InvalidBatch, RateLimited, Unavailable
from sealane.message import Batch, Limits, encode_parts
from sealane.node.describe import TopicDescription
from sealane.node.history import HISTORY_BYTES_MAX, History
from sealane.node.logs import TopicLog
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveReport, RedriveWish
from sealane.node.starts import Start, check_start, time_us_of
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus
from sealane.node.surroundings import Surroundings
from sealane.routing.exchanges import Exchange, ExchangeKind
from sealane.wire.errors import ProtocolError
from sealane.wire.frames import Buffer
from sealane.wire.messages import (
    Administer,
    Advance,
    Answer,
    Attach,
    Backup,
    Bind,
    Browse,
    Browsed,
    ConfigureTopic,
    CreateTopic,
    DeclareExchange,
    DeleteTopic,
    DescribeLogs,
    DescribeTopic,
    DropStaged,
    HistoryRead,
    ListExchanges,
    ListTopics,
    Publish,
    Published,
    PublishStaged,
    PublishTo,
    ReadHistory,
    Redrive,
    Routed,
    Seek,
    Stage,
    StartPoint,
    Status,
    Transact,
    Unbind,
    Unsubscribe,
)
from sealane.wire.runs import to_runs

T = TypeVar("T")


class RemoteBroker:
    """Implements `Broker` over the links of a pool.

    What can be repeated without harm is, until its caller's time is up: publishes, since the node knows a batch again;
    transactions, by their id; whatever asks, or asks for a state. For the rest a lost link raises `Unavailable`: it
    may have happened.
    """

    def __init__(
        self,
        pool: Pool,
        limits: Limits,
        surroundings: Surroundings,
        *,
        timeout_seconds: float,
        wait_when_limited: bool = True,
    ) -> None:
        self._pool = pool
        self._patience_seconds = timeout_seconds if wait_when_limited else 0.0
        """How long a request that a rate limit refuses is asked again."""
        self._limits = limits
        self._surroundings = surroundings
        self._publishes = Publishes(
            pool.commands, surroundings.entropy, timeout_seconds, wait_when_limited=wait_when_limited
        )
        self._numbers = count(1)
        if pool.commands.current is not None:
            self._publishes.linked(pool.commands.current)

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def surroundings(self) -> Surroundings:
        return self._surroundings

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _ask(
        self,
        request: Any,
        body: Sequence[Buffer] = (),
        *,
        again: bool,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Any, memoryview]:
        """The answer and its body. With `again`, the request is repeated on the next link if this one is lost."""
        checked(request)
        give_up = asyncio.get_running_loop().time() + self._patience_seconds
        failures: list[Exception] = []

        def told(done: int, total: int) -> None:
            try:
                if progress is not None:
                    progress(done, total)
            except Exception as error:
                failures.append(error)  # It is the caller's error, not the link's.

        while True:
            link = await self._pool.commands.connected()
            try:
                answer = await link.request(request, body, None if progress is None else told)
                if failures:
                    raise failures[0]
                return answer
            except LinkLost as error:
                if not again:
                    what = type(request).__name__
                    raise Unavailable(
                        f"{error}; the {what} it carried may have happened: look before repeating"
                    ) from None
            except Unavailable:
                if link.takes_requests:
                    raise  # It is not the link: the node itself says so.
            except RateLimited as error:  # Nothing was done, whatever was asked.
                if asyncio.get_running_loop().time() + error.retry_after_seconds >= give_up:
                    raise
                await asyncio.sleep(error.retry_after_seconds)
            await asyncio.sleep(0)  # A link that was cut is told so in the next pass of the loop.

    async def _value(self, request: Any, kind: type[T], *, again: bool = True) -> T:
        reply, _ = await self._ask(request, again=again)
        return _decoded(reply, kind)

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self, topic: str, batch: Batch) -> asyncio.Future[Receipts]:
        return self._publishes.publish(topic, Publish(0, topic), batch, _receipts)

    def hand_over(self, topic: str, batch: Batch, landed: Landed) -> None:
        self._publishes.hand_over(topic, Publish(0, topic), batch, _receipts, landed)

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> dict[str, Receipts]:
        request = PublishTo(0, exchange, routing_key)
        routed: dict[str, Receipts] = await self._publishes.publish(exchange, request, batch, _receipts_by_topic)
        return routed

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[RemoteHold, int, int, BitMap64]],
    ) -> bool:
        body: list[Buffer] = []
        sizes: list[tuple[str, int]] = []
        for topic, batch in publishes:
            head, records = encode_parts(batch)
            body += [head, memoryview(records).cast("B")]
            sizes.append((topic, len(head) + records.size))
        leased = [(hold.identity, hold.leased(partition, lease, offsets)) for hold, partition, lease, offsets in acks]
        reply, _ = await self._ask(Transact(0, transaction, sizes, leased), body, again=True)
        return _decoded(reply, bool)

    async def stage(self, topic: str, batch: Batch) -> None:
        head, records = encode_parts(batch)
        await self._ask(Stage(0, topic), [head, memoryview(records).cast("B")], again=True)

    async def publish_staged(self, transaction: str, parts: Sequence[tuple[bytes, int]], epoch: int | None) -> bool:
        reply, _ = await self._ask(PublishStaged(0, transaction, list(parts), epoch), again=True)
        return _decoded(reply, bool)

    async def drop_staged(self, parts: Sequence[bytes]) -> None:
        await self._ask(DropStaged(0, list(parts)), again=True)

    # --- consuming ----------------------------------------------------------------------------------------------------

    async def attach(
        self,
        topic: str,
        subscription: str,
        config: SubscriptionConfig,
        start: Start,
        consumer: LaneConsumer,
        *,
        keep_retry: bool = False,
    ) -> RemoteHold:
        check_config(config)
        number = next(self._numbers)
        request = Attach(0, number, consumer.id, topic, subscription, config, _start_point(start), keep_retry)
        patience = self._patience_seconds
        hold = RemoteHold(self._pool.for_consumer(), number, checked(request), consumer, patience)
        await hold.attach()
        return hold

    async def browse(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> list[Stored]:
        request = Browse(0, topic, partition, offset, bytes_max, incarnation, stop, packed=True)
        reply, body = await self._ask(request, again=True)
        return stored_of(_expected(reply, Browsed).parts, body, self._limits, bytes_max)

    async def history(
        self,
        topic: str,
        partition: int,
        entry: int,
        *,
        bytes_max: int = HISTORY_BYTES_MAX,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> History:
        request = ReadHistory(0, topic, partition, entry, bytes_max, incarnation, stop)
        reply, body = await self._ask(request, again=True)
        try:
            return History.of_stream(_expected(reply, HistoryRead).next_entry, body)
        except InvalidBatch as error:
            raise ProtocolError("bad-message", f"a history that cannot be read: {error}") from None

    async def logs(self, topics: Sequence[str], at: datetime | None = None) -> list[TopicLog]:
        at_us = None if at is None else time_us_of("at", at)
        return await self._value(DescribeLogs(0, list(topics), at_us), list[TopicLog])

    async def advance(self, topic: str, subscription: str, positions: Mapping[int, int]) -> None:
        await self._ask(Advance(0, topic, subscription, dict(positions)), again=True)

    # --- topics, subscriptions, exchanges -----------------------------------------------------------------------------

    async def create_topic(self, name: str, config: Mapping[str, Any]) -> None:
        await self._ask(CreateTopic(0, name, _plain("topic configuration", config)), again=True)

    async def configure_topic(self, name: str, changes: Mapping[str, Any]) -> None:
        await self._ask(ConfigureTopic(0, name, _plain("topic configuration", changes)), again=True)

    async def delete_topic(self, name: str) -> None:
        await self._ask(DeleteTopic(0, name), again=False)

    async def topics(self) -> list[str]:
        return await self._value(ListTopics(0), list[str])

    async def describe_topic(self, name: str) -> TopicDescription:
        return await self._value(DescribeTopic(0, name), TopicDescription)

    async def unsubscribe(self, topic: str, subscription: str) -> None:
        await self._ask(Unsubscribe(0, topic, subscription), again=False)

    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]:
        return await self._value(Seek(0, topic, subscription, _start_point(start)), dict[int, int])

    async def redrive(
        self,
        topic: str,
        subscription: str,
        wish: RedriveWish,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        only = None if wish.offsets is None else {place: to_runs(some) for place, some in wish.offsets.items()}
        request = Redrive(0, topic, subscription, wish.matching, wish.dry_run, wish.rate, wish.messages_max, only)
        told = None if progress is None else lambda done, total: progress(done)
        reply, _ = await self._ask(request, again=wish.dry_run, progress=told)
        was_dry, messages, reasons = _decoded(reply, tuple[bool, int, dict[str, int]])
        return RedriveReport(was_dry, messages, Counter(reasons))

    async def declare_exchange(self, name: str, kind: ExchangeKind) -> None:
        await self._ask(DeclareExchange(0, name, kind), again=True)

    async def bind(self, exchange: str, topic: str, routing_key: str) -> None:
        await self._ask(Bind(0, exchange, topic, routing_key), again=True)

    async def unbind(self, exchange: str, topic: str, routing_key: str) -> None:
        await self._ask(Unbind(0, exchange, topic, routing_key), again=True)

    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
        return await self._value(Status(0, topics_max), NodeStatus)

    async def administer(self, command: str, arguments: Mapping[str, Any], progress: Progress | None = None) -> Any:
        request = Administer(0, command, _plain("arguments", arguments))
        reply, _ = await self._ask(request, again=False, progress=progress)
        return _decoded(reply, Any)

    async def backup(self, target: str, *, include_key: bool = True, progress: Progress | None = None) -> BackupReport:
        reply, _ = await self._ask(Backup(0, target, include_key), again=False, progress=progress)
        return _decoded(reply, BackupReport)

    async def exchanges(self) -> dict[str, Exchange]:
        return await self._value(ListExchanges(0), dict[str, Exchange])

    # --- life ---------------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        """Why nothing gets through at the moment, for whoever waited too long."""
        limited = self._publishes.limited_by
        return self._pool.trouble or (str(limited) if limited is not None else None)

    async def close(self, *, seconds: float) -> None:
        self._publishes.close()
        await self._pool.close(seconds=seconds)


def _receipts(reply: Any, batch: Batch) -> Receipts:
    return receipts_of(_expected(reply, Published).shares, batch)


def _receipts_by_topic(reply: Any, batch: Batch) -> dict[str, Receipts]:
    return {topic: receipts_of(shares, batch) for topic, shares in _expected(reply, Routed).topics.items()}


def _expected(reply: Any, kind: type[T]) -> T:
    if not isinstance(reply, kind):
        raise ProtocolError("unexpected-message", f"the node answered with {type(reply).__name__}, not {kind.__name__}")
    return reply


def _decoded(reply: Any, kind: Any) -> Any:
    try:
        return msgspec.msgpack.decode(_expected(reply, Answer).value, type=kind)
    except msgspec.MsgspecError as error:
        raise ProtocolError("bad-message", f"the node's answer cannot be understood: {error}") from None


def _start_point(start: Start) -> StartPoint:
    check_start(start)
    if isinstance(start, str):
        return start
    if isinstance(start, datetime):
        return time_us_of("start", start)
    return dict(start)


def _plain(argument: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What can go over the wire; a value that cannot is refused here."""
    try:
        plain: dict[str, Any] = msgspec.to_builtins(dict(values))
    except TypeError as error:
        raise InvalidArgument(argument, str(error)) from None
    return plain
