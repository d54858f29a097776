"""A session: the commands of one principal, from whichever door or from within the process.

Every command passes here: its names are read in the principal's domain, it is authorised, and then it is the node's.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.engine import BackupReport, Stored
from sealane.engine.backup_report import Progress
from sealane.errors import Closed, Forbidden, InvalidArgument, InvalidBatch, RateLimited, TopicNotFound
from sealane.message import Batch, Limits, check_name, decode, split_topic
from sealane.node.administration import COMMANDS
from sealane.node.administration.table import Progress as Told
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer
from sealane.node.describe import TopicDescription, describe_topic
from sealane.node.node import Node
from sealane.node.receipts import Receipts
from sealane.node.redrive import RedriveReport, RedriveWish
from sealane.node.starts import Start
from sealane.node.status import STATUS_TOPICS_MAX, NodeStatus, node_status
from sealane.node.surroundings import Surroundings
from sealane.node.topic_config import TopicConfig
from sealane.prompt import Prompt
from sealane.routing.exchanges import Exchange, ExchangeKind
from sealane.security.principals import Action, Principal
from sealane.security.records import SYSTEM_DOMAIN

P = ParamSpec("P")
T = TypeVar("T")

PRODUCER_BYTES_MAX = 64
"""A producer's identity in a batch from outside: a partition remembers thousands of them."""
NODE = f"{SYSTEM_DOMAIN}/node"
"""What is administered where it is no domain or topic but the node itself."""


def _counted(
    command: Callable[Concatenate[Session, P], Awaitable[T]],
) -> Callable[Concatenate[Session, P], Coroutine[Any, Any, T]]:
    """A command that counts as a request: refused, before it begins, where the principal's quota is used up."""

    @wraps(command)
    async def asked(session: Session, /, *args: P.args, **options: P.kwargs) -> T:
        if session._allowance.limited:
            session._charge()
        return await command(session, *args, **options)

    return asked


class Session:
    """Made by `Gate.enter`, or for the broker in a process by itself with the principal `ADMIN`."""

    def __init__(self, node: Node, principal: Principal) -> None:
        self._node = node
        self.principal = principal
        self._allowance = node.identity.quotas.allowance(principal, node.measures.now())
        self._in_line: dict[str, list[tuple[Batch, Prompt[Receipts]]]] = {}
        """By topic: publishes that wait for the topic to be made, in their order."""
        self._making: set[asyncio.Task[None]] = set()

    @property
    def limits(self) -> Limits:
        return self._node.settings.limits

    @property
    def surroundings(self) -> Surroundings:
        return self._node.surroundings

    @property
    def node(self) -> Node:
        """For the commands that administer it; doors have no need of it."""
        return self._node

    def authorise(self, action: Action, resource: str) -> None:
        """Raise `Forbidden` unless the principal may do this to `domain/name`."""
        self._node.identity.grants.authorise(self.principal, action, resource)

    def _allow(self, action: Action, name: str) -> str:
        """The full name, if the principal may do this to it."""
        domain, bare = split_topic(name, self.principal.domain)
        if action != "consume" and (bare.startswith("_") or domain.startswith("_")):
            self._check_names(domain, bare)  # The system's names are for reading.
        full_name = f"{domain}/{bare}"
        try:
            self.authorise(action, full_name)
        except Forbidden:
            self._check_names(domain, bare)  # What cannot be a name is no matter of grants.
            raise
        return full_name

    def _check_names(self, domain: str, bare: str) -> None:
        check_name("domain", domain, self.limits)
        check_name("topic", bare, self.limits)

    def _charge(self, batches: Sequence[Batch] = ()) -> None:
        """Raise `RateLimited` if a quota is used up; asked where `_allowance.limited`, before anything is done."""
        messages = sum(map(len, batches))
        bytes_count = sum(batch.nbytes for batch in batches)
        try:
            self._allowance.charge(self._node.measures.now(), messages=messages, bytes_count=bytes_count)
        except RateLimited as error:
            self._node.measures.rate_limited(error)
            raise

    # --- publishing ---------------------------------------------------------------------------------------------------

    def open_batch(self, data: bytes | memoryview) -> Batch:
        """A batch that came from outside as bytes: everything in it is checked before anything trusts it."""
        batch = decode(data, limits=self.limits)
        meta = batch.meta
        if meta.only is not None:
            raise InvalidBatch("its metadata addresses one subscription, which only the node itself may do")
        if meta.producer is not None and len(meta.producer) > PRODUCER_BYTES_MAX:
            raise InvalidBatch(f"its producer id has {len(meta.producer)} bytes, the limit is {PRODUCER_BYTES_MAX}")
        return batch

    def publish(self, topic: str, batch: Batch) -> Prompt[Receipts]:
        """Hand the batch over in this moment: batches for one topic are stored in the order of these calls.

        The future resolves when every message is durable; refusals come through it too.
        """
        durable: Prompt[Receipts] = Prompt(loop=asyncio.get_running_loop())
        try:
            name = self._allow("publish", topic)
            if self._allowance.limited:
                self._charge([batch])
        except Exception as error:
            durable.set_exception(error)
            return durable
        line = self._in_line.get(name)
        if line is not None:
            line.append((batch, durable))
        elif not self._start_publish(name, batch, durable):
            self._in_line[name] = [(batch, durable)]
            making = asyncio.get_running_loop().create_task(self._make_topic(name), name="make a topic")
            self._making.add(making)
            making.add_done_callback(self._making.discard)
        return durable

    def _start_publish(self, name: str, batch: Batch, durable: Prompt[Receipts]) -> bool:
        """Hand the batch over, and let `durable` hear of it. False if there is no such topic."""
        try:
            publishing = self._node.start_publish(name, batch)
        except Exception as error:
            durable.set_exception(error)
            return True
        if publishing is None:
            return False
        receipts = publishing.receipts[0]

        def landed(outcome: asyncio.Future[None]) -> None:
            error = Closed("the broker closed") if outcome.cancelled() else outcome.exception()
            if durable.done():
                return
            if error is None:
                durable.set_result(receipts)
            else:
                durable.set_exception(error)

        if publishing.commit is not None and not publishing.repeats:
            publishing.commit.when_done(landed)
        else:
            again = asyncio.get_running_loop().create_task(publishing.durable(), name="repeated publish")
            again.add_done_callback(landed)
        return True

    async def _make_topic(self, name: str) -> None:
        """Make a topic for those who wait in line, and start them all in their order: none waits for another one's
        commit.
        """
        error: BaseException | None = None
        try:
            await self._node.ensure_topic(name)
        except asyncio.CancelledError:
            error = Closed("the broker closed")
            raise
        except Exception as refusal:
            error = refusal
        finally:
            for batch, durable in self._in_line.pop(name):
                if durable.done():
                    continue  # Whoever asked has given up meanwhile.
                if error is not None:
                    durable.set_exception(error)
                elif not self._start_publish(name, batch, durable):
                    durable.set_exception(TopicNotFound(name, "it was deleted in this moment"))

    async def publish_to_exchange(self, exchange: str, routing_key: str, batch: Batch) -> dict[str, Receipts]:
        """Publish to every topic that the routing key leads to, in one commit."""
        name = self._allow("publish", exchange)
        topics = self._node.exchanges.route(name, routing_key)
        for topic in topics:
            self._allow("publish", topic)
        if self._allowance.limited:
            self._charge([batch] * len(topics))
        return await self._node.publish_to_exchange(name, routing_key, batch)

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Attachment, int, int, BitMap64]],
    ) -> bool:
        """Publish and acknowledge together, once under this id: false if that had been done before."""
        named = [(self._allow("publish", topic), batch) for topic, batch in publishes]
        if self._allowance.limited and named:  # Acks alone are never refused: they free what others wait for.
            self._charge([batch for _, batch in named])
        return await self._node.transact(transaction, named, acks)

    async def is_transaction_done(self, transaction: str) -> bool:
        return await self._node.is_transaction_done(transaction)

    # --- consuming ----------------------------------------------------------------------------------------------------

    @_counted
    async def attach(
        self,
        topic: str,
        subscription: str,
        config: SubscriptionConfig,
        start: Start,
        consumer: Consumer,
        *,
        keep_retry: bool = False,
    ) -> Attachment:
        name = self._allow("consume", topic)
        return await self._node.attach(name, subscription, config, start, consumer, keep_retry=keep_retry)

    @_counted
    async def browse(self, topic: str, partition: int, offset: int, *, bytes_max: int = 1 << 20) -> list[Stored]:
        """Stored batches as they are, without leasing anything."""
        return await self._node.browse(self._allow("consume", topic), partition, offset, bytes_max=bytes_max)

    # --- topics, subscriptions, exchanges -----------------------------------------------------------------------------

    @_counted
    async def create_topic(self, name: str, config: Mapping[str, Any]) -> None:
        unknown = set(config) - set(TopicConfig.__struct_fields__)
        if unknown:
            known = ", ".join(TopicConfig.__struct_fields__)
            raise InvalidArgument(min(unknown), f"is not a setting of a topic; there are {known}")
        try:
            wanted = msgspec.convert(dict(config), TopicConfig)
        except msgspec.ValidationError as error:
            raise InvalidArgument("topic configuration", str(error)) from None
        await self._node.create_topic(self._allow("manage", name), wanted)

    @_counted
    async def configure_topic(self, name: str, changes: Mapping[str, Any]) -> None:
        await self._node.configure_topic(self._allow("manage", name), changes)

    @_counted
    async def delete_topic(self, name: str) -> None:
        await self._node.delete_topic(self._allow("manage", name))

    @_counted
    async def topics(self) -> list[str]:
        """The full names of all topics but the system's, in order."""
        return sorted(name for name, topic in self._node.topics.items() if not topic.name.startswith("_"))

    @_counted
    async def describe_topic(self, name: str) -> TopicDescription:
        return describe_topic(self._node.topic(self._allow("consume", name)))

    @_counted
    async def unsubscribe(self, topic: str, subscription: str) -> None:
        await self._node.unsubscribe(self._allow("manage", topic), subscription)

    @_counted
    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]:
        return await self._node.seek(self._allow("manage", topic), subscription, start)

    @_counted
    async def redrive(
        self,
        topic: str,
        subscription: str,
        wish: RedriveWish,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        return await self._node.redrive(self._allow("manage", topic), subscription, wish, progress)

    @_counted
    async def declare_exchange(self, name: str, kind: ExchangeKind) -> None:
        await self._node.exchanges.declare(self._allow("manage", name), kind)

    @_counted
    async def bind(self, exchange: str, topic: str, routing_key: str) -> None:
        target = self._allow("manage", topic)
        await self._node.exchanges.bind(self._allow("manage", exchange), target, routing_key)

    @_counted
    async def unbind(self, exchange: str, topic: str, routing_key: str) -> None:
        target = self._allow("manage", topic)
        await self._node.exchanges.unbind(self._allow("manage", exchange), target, routing_key)

    @_counted
    async def exchanges(self) -> dict[str, Exchange]:
        """By full name."""
        return self._node.exchanges.list()

    @_counted
    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
        self.authorise("admin", NODE)
        return node_status(self._node, topics_max=min(topics_max, STATUS_TOPICS_MAX))

    @_counted
    async def backup(self, target: str, *, include_key: bool = True, progress: Progress | None = None) -> BackupReport:
        """Copy all that is durable to a new directory of the node's machine; see `Node.backup`."""
        self.authorise("admin", NODE)
        if not Path(target).is_absolute():
            raise InvalidArgument("target", f"{target!r} is not an absolute path: the node has a directory of its own")
        return await self._node.backup(Path(target), include_key=include_key, progress=progress)

    # --- administering ------------------------------------------------------------------------------------------------

    @_counted
    async def administer(self, command: str, arguments: Mapping[str, Any], progress: Told | None = None) -> Any:
        """Carry out a command of `sealane.node.administration`; the answer is what msgspec can encode."""
        found = COMMANDS.get(command)
        if found is None:
            near = difflib.get_close_matches(command, COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidArgument("command", f"there is no {command!r}{hint}")
        return await found.run(self, found.read(command, arguments), progress or _unheard)


def _unheard(done: int, total: int) -> None:
    pass
