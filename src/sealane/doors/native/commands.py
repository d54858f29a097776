"""What each request means: a table from the native protocol's messages to the commands of a session."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import msgspec

from sealane.doors.native.consumers import NativeConsumer, moment_of, start_of
from sealane.doors.native.outgoing import Body, browsed_parts, placed_shares
from sealane.errors import (
    Closed,
    InvalidArgument,
    InvalidBatch,
    LeaseLost,
    LimitExceeded,
    TransactionAborted,
)
from sealane.node.redrive import RedriveWish
from sealane.node.session import Session
from sealane.routing.exchanges import ExchangeKind
from sealane.wire import messages as wire
from sealane.wire.runs import from_runs

TRANSACTION_BATCHES_MAX = 1_000
"""Batches of one transaction: each is checked while others wait."""
BROWSE_BYTES_MAX = 4 << 20
"""What one answer to `Browse` may hold, so that whoever reads a whole log leaves room for others."""

Outcome = tuple[wire.Reply, Body]
Command = Callable[["Asker", Any, memoryview], Awaitable[Outcome]]

_encode = msgspec.msgpack.Encoder().encode


class Asker(Protocol):
    """What a command may know of the connection that it came by."""

    @property
    def session(self) -> Session: ...
    @property
    def body_bytes_max(self) -> int: ...

    def consumer(self, number: int) -> NativeConsumer:
        """Raises `Closed` if there is none (any more)."""

    def consumer_by_identity(self, identity: str) -> NativeConsumer:
        """Of this connection or of another one of the same principal. Raises `Closed`."""

    def forget_consumer(self, consumer: NativeConsumer) -> None:
        """Nothing more will be said of it."""

    def progress(self, call: int, done: int, total: int = 0) -> None:
        """Tell the client how far a long request has come."""


def _done(request: wire.Request) -> Outcome:
    return wire.Done(request.call), []


def _answer(request: wire.Request, value: object) -> Outcome:
    return wire.Answer(request.call, msgspec.Raw(_encode(value))), []


# --- publishing -----------------------------------------------------------------------------------------------------


async def _publish_to(asker: Asker, request: wire.PublishTo, body: memoryview) -> Outcome:
    batch = asker.session.open_batch(body)
    receipts = await asker.session.publish_to_exchange(request.exchange, request.routing_key, batch)
    return wire.Routed(request.call, {topic: placed_shares(placed) for topic, placed in receipts.items()}), []


async def _transact(asker: Asker, request: wire.Transact, body: memoryview) -> Outcome:
    if len(request.publishes) > TRANSACTION_BATCHES_MAX:
        raise LimitExceeded(
            "transaction", TRANSACTION_BATCHES_MAX, len(request.publishes), unit="batches", setting="none changes it"
        )
    publishes = []
    at = 0
    for topic, count in request.publishes:
        if not 0 < count <= len(body) - at:
            raise InvalidBatch(f"its length is given as {count} bytes, {len(body) - at:,} are left in the body")
        publishes.append((topic, asker.session.open_batch(body[at : at + count])))
        at += count
    if at != len(body):
        raise InvalidBatch(f"{len(body) - at:,} bytes of the body belong to no batch of the transaction")
    try:
        acks = [asker.consumer_by_identity(identity).leased(lease) for identity, lease in request.acks]
    except (Closed, LeaseLost) as over:
        # Its connection was lost. If the answer to a first request was lost with it, this one repeats what is done.
        if await asker.session.is_transaction_done(request.transaction):
            return _answer(request, False)
        raise TransactionAborted(request.transaction, str(over)) from over
    return _answer(request, await asker.session.transact(request.transaction, publishes, acks))


async def _stage(asker: Asker, request: wire.Stage, body: memoryview) -> Outcome:
    await asker.session.stage(request.topic, asker.session.open_batch(body))
    return _done(request)


async def _publish_staged(asker: Asker, request: wire.PublishStaged, body: memoryview) -> Outcome:
    return _answer(request, await asker.session.publish_staged(request.transaction, request.parts, request.epoch))


async def _drop_staged(asker: Asker, request: wire.DropStaged, body: memoryview) -> Outcome:
    await asker.session.drop_staged(request.parts)
    return _done(request)


# --- consuming ------------------------------------------------------------------------------------------------------


async def _attach(asker: Asker, request: wire.Attach, body: memoryview) -> Outcome:
    consumer = asker.consumer(request.consumer)
    try:
        positions = await consumer.attach(asker.session, request)
    except BaseException:
        asker.forget_consumer(consumer)
        raise
    return wire.Attached(request.call, positions), []


async def _ack(asker: Asker, request: wire.Ack, body: memoryview) -> Outcome:
    await asker.consumer(request.consumer).ack(request.lease)
    return _done(request)


async def _nack(asker: Asker, request: wire.Nack, body: memoryview) -> Outcome:
    consumer = asker.consumer(request.consumer)
    await consumer.nack(request.lease, request.delay, request.reason, confirm=request.call != 0)
    return _done(request)


async def _extend(asker: Asker, request: wire.Extend, body: memoryview) -> Outcome:
    return _answer(request, await asker.consumer(request.consumer).extend(request.lease, request.seconds))


async def _detach(asker: Asker, request: wire.Detach, body: memoryview) -> Outcome:
    consumer = asker.consumer(request.consumer)
    if await consumer.detach(end=request.end):
        asker.forget_consumer(consumer)
    return _done(request)


async def _browse(asker: Asker, request: wire.Browse, body: memoryview) -> Outcome:
    if request.offset < 0:
        raise InvalidArgument("offset", f"{request.offset} is not an offset from 0")
    bytes_max = min(max(request.bytes_max, 1), BROWSE_BYTES_MAX)
    browse = asker.session.browse_packed if request.packed else asker.session.browse
    stored = await browse(
        request.topic,
        request.partition,
        request.offset,
        bytes_max=bytes_max,
        incarnation=request.incarnation,
        stop=request.stop,
    )
    parts, pieces = browsed_parts(stored, asker.body_bytes_max)
    return wire.Browsed(request.call, parts), pieces


async def _read_history(asker: Asker, request: wire.ReadHistory, body: memoryview) -> Outcome:
    read = await asker.session.history(
        request.topic,
        request.partition,
        request.entry,
        bytes_max=request.bytes_max,
        incarnation=request.incarnation,
        stop=request.stop,
    )
    return wire.HistoryRead(request.call, read.next_entry), [memoryview(read.to_stream())]


async def _describe_logs(asker: Asker, request: wire.DescribeLogs, body: memoryview) -> Outcome:
    at = None if request.at_us is None else moment_of("at", request.at_us)
    return _answer(request, await asker.session.logs(request.topics, at))


async def _advance(asker: Asker, request: wire.Advance, body: memoryview) -> Outcome:
    await asker.session.advance(request.topic, request.subscription, request.positions)
    return _done(request)


# --- topics, subscriptions, exchanges -------------------------------------------------------------------------------


async def _create_topic(asker: Asker, request: wire.CreateTopic, body: memoryview) -> Outcome:
    await asker.session.create_topic(request.topic, request.config)
    return _done(request)


async def _configure_topic(asker: Asker, request: wire.ConfigureTopic, body: memoryview) -> Outcome:
    await asker.session.configure_topic(request.topic, request.changes)
    return _done(request)


async def _delete_topic(asker: Asker, request: wire.DeleteTopic, body: memoryview) -> Outcome:
    await asker.session.delete_topic(request.topic)
    return _done(request)


async def _list_topics(asker: Asker, request: wire.ListTopics, body: memoryview) -> Outcome:
    return _answer(request, await asker.session.topics())


async def _describe_topic(asker: Asker, request: wire.DescribeTopic, body: memoryview) -> Outcome:
    return _answer(request, await asker.session.describe_topic(request.topic))


async def _unsubscribe(asker: Asker, request: wire.Unsubscribe, body: memoryview) -> Outcome:
    await asker.session.unsubscribe(request.topic, request.subscription)
    return _done(request)


async def _seek(asker: Asker, request: wire.Seek, body: memoryview) -> Outcome:
    return _answer(request, await asker.session.seek(request.topic, request.subscription, start_of(request.start)))


async def _redrive(asker: Asker, request: wire.Redrive, body: memoryview) -> Outcome:
    if request.rate is not None and not 0 < request.rate < math.inf:
        raise InvalidArgument("rate", f"{request.rate} is not a number of messages a second above 0")
    only = None if request.offsets is None else {place: from_runs(runs) for place, runs in request.offsets.items()}
    wish = RedriveWish(request.filter, request.dry_run, request.rate, request.messages_max, only)
    told = partial(asker.progress, request.call)
    report = await asker.session.redrive(request.topic, request.subscription, wish, told)
    return _answer(request, [report.dry_run, report.messages, dict(report.reasons)])


async def _declare_exchange(asker: Asker, request: wire.DeclareExchange, body: memoryview) -> Outcome:
    try:
        kind = msgspec.convert(request.kind, ExchangeKind)
    except msgspec.ValidationError as error:
        raise InvalidArgument("kind", str(error)) from None
    await asker.session.declare_exchange(request.exchange, kind)
    return _done(request)


async def _bind(asker: Asker, request: wire.Bind, body: memoryview) -> Outcome:
    await asker.session.bind(request.exchange, request.topic, request.routing_key)
    return _done(request)


async def _unbind(asker: Asker, request: wire.Unbind, body: memoryview) -> Outcome:
    await asker.session.unbind(request.exchange, request.topic, request.routing_key)
    return _done(request)


async def _list_exchanges(asker: Asker, request: wire.ListExchanges, body: memoryview) -> Outcome:
    exchanges = await asker.session.exchanges()
    return _answer(request, exchanges)


async def _status(asker: Asker, request: wire.Status, body: memoryview) -> Outcome:
    return _answer(request, await asker.session.status(topics_max=request.topics_max))


async def _backup(asker: Asker, request: wire.Backup, body: memoryview) -> Outcome:
    report = await asker.session.backup(
        request.target,
        include_key=request.include_key,
        progress=lambda done, total: asker.progress(request.call, done, total),
    )
    return _answer(request, report)


async def _administer(asker: Asker, request: wire.Administer, body: memoryview) -> Outcome:
    told = partial(asker.progress, request.call)
    return _answer(request, await asker.session.administer(request.command, request.arguments, told))


COMMANDS: dict[type, Command] = {
    wire.PublishTo: _publish_to,
    wire.Transact: _transact,
    wire.Stage: _stage,
    wire.PublishStaged: _publish_staged,
    wire.DropStaged: _drop_staged,
    wire.Attach: _attach,
    wire.Ack: _ack,
    wire.Nack: _nack,
    wire.Extend: _extend,
    wire.Detach: _detach,
    wire.Browse: _browse,
    wire.ReadHistory: _read_history,
    wire.DescribeLogs: _describe_logs,
    wire.Advance: _advance,
    wire.CreateTopic: _create_topic,
    wire.ConfigureTopic: _configure_topic,
    wire.DeleteTopic: _delete_topic,
    wire.ListTopics: _list_topics,
    wire.DescribeTopic: _describe_topic,
    wire.Unsubscribe: _unsubscribe,
    wire.Seek: _seek,
    wire.Redrive: _redrive,
    wire.DeclareExchange: _declare_exchange,
    wire.Bind: _bind,
    wire.Unbind: _unbind,
    wire.ListExchanges: _list_exchanges,
    wire.Status: _status,
    wire.Backup: _backup,
    wire.Administer: _administer,
}
"""Every request but `Publish`, which takes no task."""
FINISHING = frozenset({wire.Transact, wire.Ack, wire.Nack, wire.Extend, wire.Detach})
"""What a draining node still does: answers to what it has delivered."""
CUT_SHORT = frozenset({wire.Browse, wire.ReadHistory, wire.DescribeLogs, wire.Redrive, wire.Status, wire.Backup})
"""What nobody needs any more when the connection that asked for it is gone; the rest is short, and finishes."""
LARGE = frozenset(
    {
        wire.Browse,
        wire.ReadHistory,
        wire.DescribeLogs,
        wire.Status,
        wire.DescribeTopic,
        wire.ListTopics,
        wire.ListExchanges,
    }
)
"""What may have a long answer: carried out one at a time, and while the connection has room for it."""
