"""Publishing what is staged: in one commit if it is small, else step by step, and then always to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sealane.delivery.events import Event, PartsEnded, PublishAdvanced, PublishDecided
from sealane.delivery.staging import DecisionName, StagedBatch
from sealane.engine import Engine
from sealane.errors import InvalidArgument, QueueFull, SealaneError, StagedPartLost, TransactionAborted
from sealane.log import get_log
from sealane.node.commits import commit_together, stage
from sealane.node.owner import PartitionOwner
from sealane.node.registry import TopicRegistry
from sealane.node.staging.gathering import Gathered, check_room, gather
from sealane.node.staging.logs import StagedLogs
from sealane.node.staging.orders import Order, done, is_done
from sealane.node.staging.steps import Piece, bytes_of, messages_of, next_step
from sealane.node.topics import Topic
from sealane.node.transactions import coordinator_of

log = get_log("sealane.node")

RETRY_SECONDS_MIN = 0.05
"""How long a publish that is decided waits first when a step is refused, for want of room for example."""
RETRY_SECONDS_MAX = 2.0
"""The longest it waits before it tries again."""


class Publisher:
    """Of one node. The caller sees to it that one publish under a name runs at a time, and that nobody else touches its
    parts.
    """

    def __init__(
        self, logs: StagedLogs, registry: TopicRegistry, engine: Engine, clock: Callable[[], int], step_bytes: int
    ) -> None:
        self._logs = logs
        self._step_bytes = step_bytes
        self._registry = registry
        self._engine = engine
        self._clock = clock

    async def publish(self, order: Order) -> None:
        """Publish it as a whole. If this raises before anything is decided, nothing of it is published."""
        sources = self._sources(order)
        cores = [owner.core for owner in sources]
        batches = {owner: owner.core.staged.batches(order.parts) for owner in sources}
        topics = await self._targets(order, [batch for held in batches.values() for batch in held])
        for owner in sources:
            await owner.durable(owner.core.end)
        whole = bytes_of([batch for held in batches.values() for batch in held]) <= self._step_bytes
        gathered = Gathered()
        events: dict[PartitionOwner, list[Event]] = {}
        for owner, held in batches.items():
            pieces = next_step(held, 0, bytes_max=self._step_bytes) if whole or not events else []
            await gather(owner, pieces, topics.get, gathered)
            if gathered.damaged is not None:
                raise self._damaged(order, gathered.damaged)
            incarnations = {batch.topic: topics[batch.topic].record.incarnation for batch in held}
            events[owner] = self._first_events(owner, order, incarnations, sum(map(len, pieces)), messages_of(held))
        coordinator = await coordinator_of(self._registry, durable=True)
        if any(owner.core is not core or owner.closed for owner, core in zip(sources, cores, strict=True)):
            raise TransactionAborted(order.transaction, "what is staged is being read again from storage; try again")
        if whole:
            events[coordinator] = [done(order.name, self._clock())]
        try:
            await self._commit(gathered, events)
        except QueueFull as full:
            raise TransactionAborted(order.transaction, str(full)) from full
        if not whole:
            await self.complete(order.name)

    async def complete(self, name: DecisionName) -> None:
        """Take a publish that is decided, durably, to its end, however often a step is refused. Raises only if the
        engine has stopped.
        """
        pause, messages_max, told = RETRY_SECONDS_MIN, None, ""
        while True:
            try:
                taken = await self._advance(name, messages_max)
                if taken is None:
                    return
                pause, told = RETRY_SECONDS_MIN, ""
                messages_max = None if messages_max is None else 2 * messages_max
                continue
            except _NoRoom as full:
                # Half of it may fit, and then consumers have something to do.
                messages_max = max(1, full.messages // 2)
                refusal: Exception = full
            except (SealaneError, OSError) as error:
                if self._engine.failure is not None:
                    raise
                refusal = error
            if str(refusal) != told:  # Once for as long as it is the same: it may be for days.
                told = str(refusal)
                log.warning("a publish of what is staged waits", transaction=name[0], reason=told)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)

    # --- before anything is decided -----------------------------------------------------------------------------------

    def _sources(self, order: Order) -> list[PartitionOwner]:
        """The logs that hold its parts, all of which must be there. Raises `StagedPartLost`."""
        sources: set[PartitionOwner] = set()
        for part, expected in order.batches.items():
            holding = self._logs.holding(part)
            found = sum(len(held.batches) for _, held in holding)
            if found != expected:
                raise StagedPartLost(part.hex(), expected, found)
            sources.update(owner for owner, _ in holding)
        for owner in sources:
            owner.check()
        return sorted(sources, key=lambda owner: owner.key.domain)

    async def _targets(self, order: Order, batches: Sequence[StagedBatch]) -> dict[str, Topic]:
        """The topics that its messages are for, made now if need be, with room for them."""
        counts: dict[str, int] = {}
        for batch in batches:
            counts[batch.topic] = counts.get(batch.topic, 0) + batch.count
        topics = {}
        for name, count in counts.items():
            topic = topics[name] = await self._registry.get_or_create(name)
            try:
                check_durable(topic)
                check_room(topic, count)
            except InvalidArgument as problem:
                raise TransactionAborted(order.transaction, str(problem)) from problem
            except QueueFull as full:
                raise TransactionAborted(order.transaction, f"{count:,} more messages do not fit: {full}") from full
        return topics

    def _first_events(
        self, owner: PartitionOwner, order: Order, incarnations: dict[str, int], published: int, total: int
    ) -> list[Event]:
        held = [part for part in order.parts if part in owner.core.staged.parts]
        now_us = self._clock()
        if published == total:
            return [PartsEnded(held, now_us)]
        return [PublishDecided(*order.name, held, incarnations, published, now_us)]

    def _damaged(self, order: Order, piece: Piece) -> StagedPartLost:
        for part, expected in order.batches.items():
            if any(piece.batch in held.batches for _, held in self._logs.holding(part)):
                return StagedPartLost(part.hex(), expected, expected - 1)
        raise AssertionError("a piece is of one of the parts")

    # --- afterwards ---------------------------------------------------------------------------------------------------

    async def _advance(self, name: DecisionName, messages_max: int | None) -> int | None:
        """Take the next step. Returns how many messages it published, None if all was done before."""
        coordinator = await coordinator_of(self._registry, durable=True)
        coordinator.check()
        logs = self._logs.all()
        for owner in logs:
            owner.check()  # One that is being read again may not know of the decision yet.
        sources = [owner for owner in logs if name in owner.core.staged.decisions]
        if not sources:
            if not is_done(coordinator.core, name):
                # It was decided, and is not: the domain was destroyed for which messages were left.
                await self._commit(Gathered(), {coordinator: [done(name, self._clock())]})
            return None
        source = sources[0]
        decision = source.core.staged.decisions[name]
        batches = source.core.staged.batches(decision.parts)
        pieces = next_step(batches, decision.messages, bytes_max=self._step_bytes, messages_max=messages_max)
        gathered = Gathered()
        await gather(source, pieces, lambda topic: self._still_there(topic, decision.topics), gathered)
        if source.closed or source.core.staged.decisions.get(name) is not decision:
            return 0  # It was read again, or is gone, while the messages were read.
        taken = sum(map(len, pieces))
        published = decision.messages + taken
        events: dict[PartitionOwner, list[Event]] = {source: [PublishAdvanced(*name, published)]}
        if published == messages_of(batches):
            events[source] = [PartsEnded(list(decision.parts), self._clock())]
            if len(sources) == 1:
                events[coordinator] = [done(name, self._clock())]
        try:
            await self._commit(gathered, events)
        except QueueFull as full:
            raise _NoRoom(full, taken) from full
        _tell_of_losses(name, gathered)
        return taken

    def _still_there(self, name: str, incarnations: dict[str, int]) -> Topic | None:
        topic = self._registry.running.get(name)
        return topic if topic is not None and topic.record.incarnation == incarnations.get(name) else None

    async def _commit(self, gathered: Gathered, events: dict[PartitionOwner, list[Event]]) -> None:
        shares = gathered.plan()
        shares += [stage(owner, planned=happened) for owner, happened in events.items()]
        await asyncio.shield(commit_together(self._engine, shares))


class _NoRoom(Exception):
    """A step of so many messages was refused."""

    def __init__(self, full: QueueFull, messages: int) -> None:
        self.messages = messages
        super().__init__(str(full))


def check_durable(topic: Topic) -> None:
    """Raise `InvalidArgument` for a topic that is kept in memory: what is staged would outlive it."""
    if not topic.config.durable:
        problem = f"{topic.full_name!r} is kept in memory; only for durable topics can something be staged"
        raise InvalidArgument("topic", problem)


def _tell_of_losses(name: DecisionName, gathered: Gathered) -> None:
    for topic, count in gathered.homeless.items():
        log.warning(
            "staged messages are dropped: their topic was deleted", transaction=name[0], topic=topic, count=count
        )
    if gathered.damaged is not None:
        log.error("staged messages are damaged and lost", transaction=name[0], topic=gathered.damaged.batch.topic)
