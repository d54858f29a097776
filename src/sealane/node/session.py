"""A session: the commands of one principal, from whichever door or from within the process.

Every command passes here: its names are read in the principal's domain, it is authorised, and then it is the node's.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyroaring import BitMap64

from sealane.engine import BackupReport
from sealane.engine.backup_report import Progress
from sealane.errors import Closed, InvalidArgument, InvalidBatch, TopicNotFound
from sealane.message import Batch, decode, split_topic
from sealane.node.administration import COMMANDS
from sealane.node.administration.table import Progress as Told
from sealane.node.attachment import Attachment
from sealane.node.audit_folding import NOWHERE, Origin
from sealane.node.authors import author_of
from sealane.node.charging import counted
from sealane.node.consuming import Consuming
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
from sealane.security.grants.grants import NODE as NODE
from sealane.security.principals import Principal

PRODUCER_BYTES_MAX = 64
"""A producer's identity in a batch from outside: a partition remembers thousands of them."""


class Session(Consuming):
    """Made by `Gate.enter`, or for the broker in a process by itself with the principal `ADMIN`."""

    def __init__(self, node: Node, principal: Principal, origin: Origin = NOWHERE) -> None:
        super().__init__(node, principal, origin)
        self._in_line: dict[str, list[tuple[Batch, Prompt[Receipts]]]] = {}
        """By topic: publishes that wait for the topic to be made, in their order."""
        self._making: set[asyncio.Task[None]] = set()

    @property
    def surroundings(self) -> Surroundings:
        return self._node.surroundings

    @property
    def node(self) -> Node:
        """For the commands that administer it; doors have no need of it."""
        return self._node

    def signing_secret(self) -> bytes | None:
        """By what the principal signs where a door asks for that: those who came in by an API key have one. Raises
        `Unauthenticated` if that is over by now.
        """
        if self.principal.kind != "key":
            return None
        return self._node.identity.api_keys.secret_of(self.principal)

    # --- publishing ---------------------------------------------------------------------------------------------------

    def open_batch(self, data: bytes | memoryview) -> Batch:
        """A batch that came from outside as bytes: everything in it is checked before anything trusts it."""
        batch = decode(data, limits=self.limits)
        meta = batch.meta
        if meta.only is not None:
            raise InvalidBatch("its metadata addresses one subscription, which only the node itself may do")
        if meta.producer is not None and len(meta.producer) > PRODUCER_BYTES_MAX:
            raise InvalidBatch(f"its producer id has {len(meta.producer)} bytes, the limit is {PRODUCER_BYTES_MAX}")
        if author_of(meta) is not None:
            raise InvalidBatch("its metadata says who wrote it, which only the node itself may do")
        return batch

    def publish(self, topic: str, batch: Batch) -> Prompt[Receipts]:
        """Hand the batch over in this moment: batches for one topic are stored in the order of these calls.

        The future resolves when every message is durable; refusals come through it too.
        """
        durable: Prompt[Receipts] = Prompt(loop=asyncio.get_running_loop())
        try:
            name = self.allow("publish", topic)
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
            with self.noting_new(name):
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
        name = self.allow("publish", exchange)
        topics = self._node.exchanges.route(name, routing_key)
        for topic in topics:
            self.allow("publish", topic)
        if self._allowance.limited:
            self._charge([batch] * len(topics))
        with self.noting_new(*topics):
            return await self._node.publish_to_exchange(name, routing_key, batch)

    async def transact(
        self,
        transaction: str,
        publishes: Sequence[tuple[str, Batch]],
        acks: Sequence[tuple[Attachment, int, int, BitMap64]],
    ) -> bool:
        """Publish and acknowledge together, once under this id: false if that had been done before.

        Each domain has ids of its own. Acks are by attachments, which were authorised when they were made.
        """
        if not publishes and not acks:
            self.allow_member()
        named = [(self.allow("publish", topic), batch) for topic, batch in publishes]
        if self._allowance.limited and named:  # Acks alone are never refused: they free what others wait for.
            self._charge([batch for _, batch in named])
        with self.noting_new(*(topic for topic, _ in named)):
            return await self._node.transact(transaction, named, acks, domain=self.principal.domain)

    async def is_transaction_done(self, transaction: str) -> bool:
        """Whether one under this id has been committed by someone of the principal's domain."""
        self.allow_member()
        return await self._node.is_transaction_done(transaction, domain=self.principal.domain)

    async def stage(self, topic: str, batch: Batch) -> None:
        """Keep a batch for this topic, durable and unseen; see `sealane.node.staging`."""
        name = self.allow("publish", topic)
        if self._allowance.limited:
            self._charge([batch])
        await self._node.staging.stage(name, batch)

    async def publish_staged(self, transaction: str, parts: Sequence[tuple[bytes, int]], epoch: int | None) -> bool:
        """Publish what was staged, together, once: false if that had been done before."""
        self.allow_member()
        staging = self._node.staging
        topics = [self.allow("publish", name) for name in staging.topics_of([part for part, _ in parts])]
        with self.noting_new(*topics):
            return await staging.publish(transaction, parts, epoch, domain=self.principal.domain)

    async def drop_staged(self, parts: Sequence[bytes]) -> None:
        """Forget what was staged."""
        self.allow_member()
        for name in self._node.staging.topics_of(parts):
            self.allow("publish", name)
        await self._node.staging.drop(parts)

    # --- topics, subscriptions, exchanges -----------------------------------------------------------------------------

    @counted
    async def create_topic(self, name: str, config: Mapping[str, Any]) -> None:
        name = self.allow("manage", name)
        unknown = set(config) - set(TopicConfig.__struct_fields__)
        if unknown:
            known = ", ".join(TopicConfig.__struct_fields__)
            raise InvalidArgument(min(unknown), f"is not a setting of a topic; there are {known}")
        try:
            wanted = msgspec.convert(dict(config), TopicConfig)
        except msgspec.ValidationError as error:
            raise InvalidArgument("topic configuration", str(error)) from None
        work = self._node.create_topic(name, wanted)
        await (self.recorded("topic.create", name, work, _told(config)) if name not in self._node.topics else work)

    @counted
    async def configure_topic(self, name: str, changes: Mapping[str, Any]) -> None:
        name = self.allow("manage", name)
        await self.recorded("topic.configure", name, self._node.configure_topic(name, changes), _told(changes))

    @counted
    async def delete_topic(self, name: str) -> None:
        name = self.allow("manage", name)
        await self.recorded("topic.delete", name, self._node.delete_topic(name))

    @counted
    async def topics(self) -> list[str]:
        """The full names of all topics that the principal may do anything to, in order; none of the system's."""
        return sorted(name for name, topic in self._node.topics.items() if not topic.is_system and self.may_see(name))

    @counted
    async def describe_topic(self, name: str) -> TopicDescription:
        """For whoever consumes it, and for whoever manages it."""
        full_name = "/".join(split_topic(name, self.principal.domain))
        if not self.may("manage", full_name):
            self.allow("consume", name)
        return describe_topic(self._node.topic(full_name))

    @counted
    async def unsubscribe(self, topic: str, subscription: str) -> None:
        name = self.allow("manage", topic, of_system=True)
        work = self._node.unsubscribe(name, subscription)
        await self.recorded("subscription.delete", name, work, {"subscription": subscription})

    @counted
    async def seek(self, topic: str, subscription: str, start: Start) -> dict[int, int]:
        name = self.allow("manage", topic, of_system=True)
        work = self._node.seek(name, subscription, start)
        return await self.recorded("subscription.seek", name, work, {"subscription": subscription, "to": str(start)})

    @counted
    async def redrive(
        self,
        topic: str,
        subscription: str,
        wish: RedriveWish,
        progress: Callable[[int], None] | None = None,
    ) -> RedriveReport:
        name = self.allow("manage", topic)
        work = self._node.redrive(name, subscription, wish, progress)
        if wish.dry_run:
            return await work
        return await self.recorded("redrive", name, work, {"subscription": subscription})

    @counted
    async def declare_exchange(self, name: str, kind: ExchangeKind) -> None:
        name = self.allow("manage", name)
        await self.recorded("exchange.declare", name, self._node.exchanges.declare(name, kind), {"kind": kind})

    @counted
    async def bind(self, exchange: str, topic: str, routing_key: str) -> None:
        target, name = self.allow("manage", topic), self.allow("manage", exchange)
        work = self._node.exchanges.bind(name, target, routing_key)
        await self.recorded("exchange.bind", name, work, {"topic": target, "key": routing_key})

    @counted
    async def unbind(self, exchange: str, topic: str, routing_key: str) -> None:
        target, name = self.allow("manage", topic), self.allow("manage", exchange)
        work = self._node.exchanges.unbind(name, target, routing_key)
        await self.recorded("exchange.unbind", name, work, {"topic": target, "key": routing_key})

    @counted
    async def exchanges(self) -> dict[str, Exchange]:
        """By full name: those that the principal may do anything to, with their bindings to topics it may see."""
        return {
            name: msgspec.structs.replace(
                exchange, bindings=tuple(bound for bound in exchange.bindings if self.may_see(bound.topic))
            )
            for name, exchange in self._node.exchanges.list().items()
            if self.may_see(name)
        }

    @counted
    async def status(self, *, topics_max: int = STATUS_TOPICS_MAX) -> NodeStatus:
        self.authorise("admin", NODE)
        return node_status(self._node, topics_max=min(topics_max, STATUS_TOPICS_MAX))

    @counted
    async def backup(self, target: str, *, include_key: bool = True, progress: Progress | None = None) -> BackupReport:
        """Copy all that is durable to a new directory of the node's machine; see `Node.backup`."""
        self.authorise("admin", NODE)
        if not Path(target).is_absolute():
            raise InvalidArgument("target", f"{target!r} is not an absolute path: the node has a directory of its own")
        # Written down before it is made: what leaves the node may do so before the last of it has.
        await self.note("backup", NODE, {"target": target, "include_key": include_key})
        return await self._node.backup(Path(target), include_key=include_key, progress=progress)

    # --- administering ------------------------------------------------------------------------------------------------

    @counted
    async def administer(self, command: str, arguments: Mapping[str, Any], progress: Told | None = None) -> Any:
        """Carry out a command of `sealane.node.administration`; the answer is what msgspec can encode."""
        found = COMMANDS.get(command)
        if found is None:
            near = difflib.get_close_matches(command, COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidArgument("command", f"there is no {command!r}{hint}")
        given = found.read(command, arguments)
        work = found.run(self, given, progress or _unheard)
        if found.effect == "changes":
            return await self.recorded(command, NODE, work, found.told(given))
        answer = await work
        if found.effect == "reads":
            self.looked(command, NODE, found.told(given))
        return answer


def _unheard(done: int, total: int) -> None:
    pass


def _told(settings: Mapping[str, Any]) -> dict[str, str | int]:
    """A topic's settings as the audit log has them."""
    return {name: value if isinstance(value, str | int) else str(value) for name, value in settings.items()}
