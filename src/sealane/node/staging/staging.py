"""The commands: stage a batch, publish parts, drop parts; and what a node does about parts by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from sealane.delivery.config import SECOND_US
from sealane.delivery.events import BatchStaged, PartsEnded, Published
from sealane.delivery.partition import Publication
from sealane.delivery.staging import PART_BYTES, DecisionName, StagedBatch
from sealane.engine import Engine
from sealane.errors import Closed, InvalidArgument, InvalidBatch, SealaneError, StorageError
from sealane.log import get_log
from sealane.message import Batch, split_topic
from sealane.node.commits import commit_together, stage
from sealane.node.owner import PartitionOwner
from sealane.node.publishing import admit
from sealane.node.registry import TopicRegistry
from sealane.node.settings import StagingSettings
from sealane.node.staging.logs import StagedLogs
from sealane.node.staging.orders import Order, is_done, read_order
from sealane.node.staging.publisher import Publisher, check_durable
from sealane.node.supervision import Supervisor
from sealane.node.transactions import Transactions, coordinator_of

log = get_log("sealane.node")

T = TypeVar("T")


class Staging:
    """Of one node; see the package's text."""

    def __init__(
        self,
        registry: TopicRegistry,
        transactions: Transactions,
        engine: Engine,
        settings: StagingSettings,
        clock: Callable[[], int],
        supervisor: Supervisor,
    ) -> None:
        self._registry = registry
        self._transactions = transactions
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._supervisor = supervisor
        self._logs = StagedLogs(registry, supervisor)
        self._publisher = Publisher(self._logs, registry, engine, clock, settings.step_bytes)
        self._taken: set[bytes] = set()
        """Parts that are being published: they neither grow nor go meanwhile."""
        self._under_way: dict[DecisionName, asyncio.Task[None]] = {}
        """Publishes that were decided before, and go on by themselves."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def staged_messages(self) -> int:
        """How many messages are staged."""
        return sum(owner.core.staged.messages for owner in self._logs.all())

    @property
    def staged_bytes(self) -> int:
        """How many bytes they have."""
        return sum(owner.core.staged.bytes for owner in self._logs.all())

    def topics_of(self, parts: Sequence[bytes]) -> list[str]:
        """The full names of the topics that the parts are for, in order; parts that are not there are for none."""
        return self._logs.topics_of(parts)

    # --- staging ------------------------------------------------------------------------------------------------------

    async def stage(self, topic: str, batch: Batch) -> None:
        """Keep a batch for a topic, by its full name; returns when it is durable.

        Its metadata says which part it belongs to (`producer`) and which of the part's batches it is (`sequence`). One
        that is here already is kept once.
        """
        part, number = _place_of(batch)
        target = self._registry.find(topic)
        if target is not None:
            check_durable(target)
        domain, _ = split_topic(topic)
        owner = await self._logs.ensure(domain)
        # From here to the commit nothing is awaited: nobody else takes this number meanwhile.
        holding = self._logs.holding(part)
        known = sum(len(held.batches) for _, held in holding)
        if number < known:
            place, earlier = next(
                (place, each) for place, held in holding for each in held.batches if each.number == number
            )
            _check_same(part, earlier, topic, batch)
            await place.durable(earlier.stop)
            return
        self._check_open(part, number, known)
        if target is not None:
            # Here, and not when it is published: by then the publish may be decided, and cannot be refused any more.
            batch = admit(target, batch)
        await asyncio.shield(self._keep(owner, part, number, topic, batch))

    def _keep(self, owner: PartitionOwner, part: bytes, number: int, topic: str, batch: Batch) -> asyncio.Future[None]:
        # Given ids enter their topic's window when they are published, not this log's; the event has what the metadata
        # loses here.
        meta = msgspec.structs.replace(batch.meta, given_ids=False, producer=None, sequence=None, only=None)
        base, count, now_us = owner.core.end, len(batch), self._clock()
        publication = Publication(
            batch.with_meta(meta), base, range(base, base + count), [Published(base, count, now_us)]
        )
        staged = BatchStaged(part, number, topic, base, count, batch.nbytes, now_us, batch.meta.given_ids)
        return owner.commit(stage(owner, publication, [staged]))

    def _check_open(self, part: bytes, number: int, known: int) -> None:
        """Whether the part can take this as its next batch."""
        if self._is_taken(part) or any(owner.core.staged.has_ended(part) for owner in self._logs.all()):
            raise InvalidBatch(
                f"batch {number} of part {part.hex()} comes too late: the part is published, dropped or expired; "
                "stage it in a new part"
            )
        if number != known:
            raise InvalidBatch(
                f"it is batch {number} of part {part.hex()}, of which {known} are staged: {known} comes next"
            )

    def _is_taken(self, part: bytes) -> bool:
        return part in self._taken or any(owner.core.staged.is_decided(part) for owner in self._logs.all())

    # --- publishing ---------------------------------------------------------------------------------------------------

    async def publish(
        self, transaction: str, parts: Sequence[tuple[bytes, int]], epoch: int | None, *, domain: str
    ) -> bool:
        """Publish parts, each with the number of its batches, together and once. False: that had been done before, and
        the parts are dropped now.

        What was begun is finished, even if the caller gives up. `domain` is whose transaction it is.
        """
        order = read_order(transaction, parts, epoch, domain)
        return await self._whole(self._publish(order))

    async def _publish(self, order: Order) -> bool:
        async with self._transactions.alone(order.name[0]):
            coordinator = await coordinator_of(self._registry, durable=True)
            coordinator.check()
            if self._is_decided(order.name):
                await self._publisher.complete(order.name)
            elif is_done(coordinator.core, order.name):
                await coordinator.flush()
            else:
                with self._taking(order.parts):
                    await self._publisher.publish(order)
                self._logs.trim()
                return True
        await self.drop(order.parts)
        return False

    @contextmanager
    def _taking(self, parts: Sequence[bytes]) -> Iterator[None]:
        for part in parts:
            if self._is_taken(part):
                raise InvalidArgument("parts", f"part {part.hex()} is being published under another name")
        self._taken.update(parts)
        try:
            yield
        finally:
            self._taken.difference_update(parts)

    def _is_decided(self, name: DecisionName) -> bool:
        """Asked by who holds the lock of that name."""
        for owner in self._logs.all():
            owner.check()  # After a commit that failed it may know of a decision that never was.
        return any(name in owner.core.staged.decisions for owner in self._logs.all())

    # --- forgetting ---------------------------------------------------------------------------------------------------

    async def drop(self, parts: Iterable[bytes]) -> None:
        """Forget parts; those that are not there, or are being published, are left as they are."""
        unwanted = [part for part in parts if not self._is_taken(part)]
        shares = []
        for owner in self._logs.all():
            held = [part for part in unwanted if part in owner.core.staged.parts]
            if held:
                shares.append(stage(owner, planned=[PartsEnded(held, self._clock())]))
        if shares:
            await asyncio.shield(commit_together(self._engine, shares))
            self._logs.trim()

    async def tidy(self) -> None:
        """Called from time to time: forget parts that are too old, go on with what is decided and nobody sees to."""
        self._go_on()
        before_us = self._clock() - round(self._settings.keep_seconds * SECOND_US)
        old = {part for owner in self._logs.all() for part in owner.core.staged.older_than(before_us)}
        # Of a part in several logs the youngest batch counts.
        expired = [part for part in old if all(held.staged_us < before_us for _, held in self._logs.holding(part))]
        if expired:
            log.warning("parts were staged and never published: they are dropped", count=len(expired))
            await self.drop(expired)

    # --- coming and going ---------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """The node's topics are loaded: go on with what had been decided."""
        self._logs.find_all()
        self._go_on()

    def _go_on(self) -> None:
        for owner in self._logs.all():
            for name, decision in owner.core.staged.decisions.items():
                if name not in self._under_way and self._taken.isdisjoint(decision.parts) and not self._closed:
                    log.info("a publish of what is staged goes on", transaction=name[0], messages=decision.messages)
                    self._under_way[name] = self._complete(name)

    def _complete(self, name: DecisionName) -> asyncio.Task[None]:
        async def complete() -> None:
            async with self._transactions.alone(name[0]):
                try:
                    if self._is_decided(name):
                        await self._publisher.complete(name)
                except StorageError as error:
                    # `tidy` comes back to it, or a restart if the engine has stopped.
                    log.warning("a publish of what is staged waits", transaction=name[0], reason=str(error))
            self._logs.trim()

        task = self._supervisor.keep("staged publish", complete, transaction=name[0])
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._under_way.pop(name, None))
        return task

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(work, name="publish staged")
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise Closed("the broker closed; publish again to hear what became of it") from None
            raise

    def _finished(self, task: asyncio.Task[Any]) -> None:
        """Its caller may have gone: what went wrong is not to be lost, and refusals need nobody."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SealaneError | OSError):
            self._supervisor.crashed("publish staged", error)

    async def close(self) -> None:
        """Stop; what is decided goes on after the next start."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _place_of(batch: Batch) -> tuple[bytes, int]:
    """The part that a batch belongs to, and which of its batches it is."""
    part, number = batch.meta.producer, batch.meta.sequence
    if part is None or len(part) != PART_BYTES or number is None or number < 0:
        raise InvalidBatch(
            f"its metadata does not say to which part it belongs: `producer` must have {PART_BYTES} bytes, and "
            "`sequence` count the part's batches from 0"
        )
    if not len(batch):
        raise InvalidBatch("it is empty: there is nothing to stage")
    return part, number


def _check_same(part: bytes, earlier: StagedBatch, topic: str, batch: Batch) -> None:
    if (earlier.topic, earlier.count) != (topic, len(batch)):
        raise InvalidBatch(
            f"batch {earlier.number} of part {part.hex()} is staged already, with {earlier.count:,} messages for "
            f"{earlier.topic!r}: this is another one; number the part's batches one after another"
        )
