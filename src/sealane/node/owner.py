"""The owner of a partition: its core state, its journal, its commits and its timer.

Events that nobody waits for (grants, buffered acks) gather here and ride with the next commit; a timer sends them off
when no commit comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sealane.delivery.events import (
    Event,
    Failed,
    Released,
    SubscriptionEvent,
    decode_events,
    encode_events,
)
from sealane.delivery.offsets import unpack
from sealane.delivery.partition import Partition, Publication
from sealane.delivery.subscription import Subscription
from sealane.engine import Append, Engine, PartitionKey, Stored
from sealane.errors import SealaneError, StorageError, StorageFailed, StorageFull
from sealane.log import get_log
from sealane.message import Batch
from sealane.node.commits import Staged, commit_together, stage
from sealane.node.dispatch import Dispatcher
from sealane.node.flush_timer import FlushTimer
from sealane.node.journal import Journal
from sealane.node.measures import Measures
from sealane.node.read_ahead import READ_AHEAD_BYTES, ReadAhead
from sealane.node.reloading import reload
from sealane.node.settings import NodeSettings
from sealane.node.supervision import Backoff, Supervisor
from sealane.node.ticking import Ticker
from sealane.node.topic_config import TopicConfig
from sealane.node.watchers import Watchers
from sealane.node.witness import Witness
from sealane.prompt import Prompt

log = get_log("sealane.node")

RELOAD_SECONDS_MAX = 5.0
"""Whoever has an ack confirmed waits so long for a partition that is read again: milliseconds, if it can be read."""


class PartitionOwner:
    """See the module's text. Made by `load`; all methods run on the node's loop."""

    def __init__(
        self,
        key: PartitionKey,
        engine: Engine,
        config: TopicConfig,
        settings: NodeSettings,
        clock: Callable[[], int],
        bury: Callable[[PartitionOwner, Subscription], None],
        read_ahead: ReadAhead,
        supervisor: Supervisor,
        measures: Measures,
    ) -> None:
        self.key = key
        self.engine = engine
        self.settings = settings
        self.clock = clock
        self.supervisor = supervisor
        self.core = Partition(f"{key.domain}/{key.topic}", config.limits())
        self.witness = Witness(measures, self.core.topic, key.partition)
        self.dispatchers: dict[str, Dispatcher] = {}
        self.told_of_commits: set[Callable[[], None]] = set()
        self.watchers = Watchers()
        self.error: BaseException | None = None
        self.message_bytes = 128
        """About how large a message is here, for sizing deliveries."""
        self._bury = bury
        self._read_ahead = read_ahead
        self._epoch = 0
        self._next_lease = 0
        self.journal = Journal(key, engine, clock, retention_seconds=config.retention_seconds)
        self._waiting: list[Event] = []
        self._handed_back: list[Event] = []
        self._last_commit: Prompt[None] | None = None
        self._flush_timer = FlushTimer(self._flush_now)
        self.ticker = Ticker(self)
        self._closed = False
        self._sealed = True
        self._reloading: asyncio.Task[None] | None = None
        self._reload_pauses = Backoff()

    # --- coming and going ---------------------------------------------------------------------------------------------

    async def load(self, *, sealed: bool) -> None:
        """Take the partition over from the engine: fold its journal, pass over what was damaged."""
        self._sealed = sealed
        await self.take_over(self.core)

    async def take_over(self, core: Partition) -> None:
        opened = await self.engine.open(self.key, sealed=self._sealed)
        self._epoch = opened.epoch
        self._next_lease = opened.epoch << 20
        self.journal.opened(opened)
        entries = await self.engine.read_journal(self.key, opened.journal_folded)
        for _, entry in entries:
            self.journal.unfolded_bytes += len(entry)
            for event in decode_events(entry):
                core.apply(event)
        core.recovered(opened.start, opened.end)
        self.core = core
        # Counted here: damage may have been found by the reading just now, and not when the partition was opened.
        missing = opened.journal_end - opened.journal_folded - len(entries)
        if missing:
            log.error(
                "journal entries are damaged; what they settled may be delivered again", **self.fields, count=missing
            )
            core.unplain.add_range(opened.start, opened.end)
        for start, stop in opened.lost:
            if (start, stop) not in core.lost:
                self.lose(start, stop)

    def start(self) -> None:
        """The topic is known to the node: see to what is due."""
        for subscription in self.core.subscriptions.values():
            if subscription.dying:
                self._bury(self, subscription)
        self.ticker.arm()
        self.watchers.tell(None)

    def configure(self, config: TopicConfig) -> None:
        self.core.configure(config.limits())
        self.journal.retention_seconds = config.retention_seconds

    async def close(self) -> None:
        """Stop serving; journal what waits."""
        if self._closed:
            return
        self._closed = True
        self.watchers.tell(None)
        self._read_ahead.forget(self.key)
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait([self._reloading])
        for dispatcher in list(self.dispatchers.values()):
            await dispatcher.close()
        self.ticker.close()
        self._flush_timer.close()
        if self.engine.failure is None and self.error is None and self.supervisor.failure is None:
            if self.journal.unfolded_bytes > self.settings.snapshot_journal_bytes // 16:
                self._snapshot()
            try:
                await self.flush()
            except StorageError as error:
                # Nobody waits for what waited here: it is as if this had come a moment earlier.
                log.warning("the last events were not journalled", **self.fields, reason=str(error))

    @property
    def fields(self) -> dict[str, object]:
        """How the log names this partition."""
        return {"topic": self.core.topic, "partition": self.key.partition}

    @property
    def closed(self) -> bool:
        return self._closed

    # --- publishing ---------------------------------------------------------------------------------------------------

    def plan(self, batch: Batch) -> Publication:
        self.check()
        return self.core.publish(batch, self.clock())

    async def durable(self, end: int) -> None:
        """Wait until everything below `end` is durable."""
        while self.core.visible < end:
            self.check()
            if self._last_commit is None:
                raise StorageFailed(f"{self.key}: offset {end - 1} was never committed")
            await asyncio.shield(self._last_commit)

    def check(self) -> None:
        """Raise if this partition cannot take commands."""
        if self.supervisor.failure is not None:
            task = self.supervisor.failed_task
            raise StorageFailed(f"{self.key} takes no writes: {task} crashed and the node stops; its log says why")
        error = self.engine.failure or self.error
        if isinstance(error, StorageFull):
            raise error
        if error is not None:
            raise StorageFailed(f"{self.key} takes no writes after an error: {error}") from error

    async def ready(self) -> None:
        """The same once it has been read again, if it is being read again: what it was told meanwhile is kept."""
        if self._reloading is not None and not self._reloading.done():
            await asyncio.wait([self._reloading], timeout=RELOAD_SECONDS_MAX)
        self.check()

    # --- the journal --------------------------------------------------------------------------------------------------

    def take_waiting(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        self._flush_timer.clear()
        return waiting

    def put_waiting_back(self, events: Sequence[Event]) -> None:
        self._waiting = [*events, *self._waiting]
        if events:
            self._flush_within(self.settings.grant_flush_seconds)

    def append(self, batch: Batch | None, base: int, events: Sequence[Event]) -> Append:
        entry = encode_events(events) if events else None
        return Append(self.key, self._epoch, batch, base, entry, self.journal.end)

    def accepted(self, append: Append, planned: Sequence[Event], durable: Prompt[None]) -> None:
        """The engine has the commit in its order: let it take effect."""
        self._last_commit = durable
        if append.batch is not None:
            self.message_bytes = max(1, append.batch.nbytes // len(append.batch))
        if append.journal is not None:
            self.journal.grew(append.journal)
        for event in planned:
            self.core.apply(event)
        if planned:
            self.witness.happened(planned, None)
            self.watchers.tell(planned)

    def committed(self, visible: int) -> None:
        self.core.committed(visible)
        for dispatcher in self.dispatchers.values():
            dispatcher.wake()
        for told in self.told_of_commits:
            told()
        if self.journal.snapshot_is_due(self.settings.snapshot_journal_bytes):
            self._snapshot()

    def broke(self, error: BaseException | None, riding: Sequence[Event], *, pause: float = 0) -> None:
        """A commit failed after it was accepted: what is in memory is no longer what is stored."""
        self._handed_back.extend(riding)
        if self.error is not None:
            return
        self.error = error or StorageFailed(f"{self.key}: a commit was abandoned")
        if self.engine.failure is None and self.supervisor.failure is None and not self._closed:
            log.warning("a partition is read again from the engine", **self.fields, reason=str(self.error))
            self._reloading = asyncio.get_running_loop().create_task(reload(self, pause), name="reload")
        else:
            log.error("a partition takes no more writes", **self.fields, reason=str(self.error))

    def distrust(self, task: str, error: Exception) -> None:
        """Something crashed while it changed what is in memory: no more of that, fold again what is stored."""
        self.supervisor.crashed(task, error, **self.fields)
        # What nobody expected may say anything in its text, a payload too: clients hear only of what kind it is.
        told = StorageFailed(f"{task} crashed ({type(error).__name__}); the partition is read again")
        self.broke(told, (), pause=self._reload_pauses.next_seconds(asyncio.get_running_loop().time()))

    def take_unsure(self) -> list[Event]:
        """The events of failed commits and those that waited for one; the partition was read without them."""
        self._last_commit = None
        unsure = [*self._handed_back, *self._waiting]
        self._handed_back, self._waiting = [], []
        return unsure

    def commit(self, share: Staged) -> Prompt[None]:
        return commit_together(self.engine, [share])

    async def flush(self) -> None:
        """Return once everything that has happened here is durable."""
        if self._waiting:
            self.check()
            await asyncio.shield(self.commit(stage(self)))
        elif self._last_commit is not None:
            await asyncio.shield(self._last_commit)

    def note(
        self, subscription: Subscription, events: Sequence[SubscriptionEvent], *, soon: bool = True, wake: bool = True
    ) -> None:
        """These have happened to a subscription: journal them before long, and do what follows from them.

        `wake` is whether they may have made a message ready.
        """
        self.note_journal_of(subscription, events, soon=soon)
        self.see_to(subscription, events)
        if wake and (dispatcher := self.dispatchers.get(subscription.name)) is not None:
            dispatcher.wake()

    def note_journal_of(
        self, subscription: Subscription, events: Sequence[SubscriptionEvent], *, soon: bool = True
    ) -> None:
        """Journal them before long, if the subscription is one that lasts."""
        if events and self.core.subscriptions.get(subscription.name) is subscription:
            self.note_journal(events, soon=soon)

    def see_to(self, subscription: Subscription, events: Sequence[SubscriptionEvent]) -> None:
        """What follows from the events, beside their journal: counting, burying, the next tick."""
        if events:
            self.witness.happened(events, subscription)
            self.watchers.tell(events)
        if subscription.dying:
            self._bury(self, subscription)
        self.ticker.arm_for(subscription)

    def note_journal(self, events: Sequence[Event], *, soon: bool = True) -> None:
        self._waiting.extend(events)
        seconds = self.settings.ack_flush_seconds if soon else self.settings.grant_flush_seconds
        self._flush_within(0 if len(self._waiting) >= self.settings.journal_events_max else seconds)

    def _flush_within(self, seconds: float) -> None:
        if not self._closed:
            self._flush_timer.within(seconds)

    def _flush_now(self) -> None:
        if not self._waiting or self.error or self.engine.failure or self.supervisor.failure:
            return
        try:
            self.commit(stage(self)).when_done(_consume_exception)
        except StorageFull as error:
            log.warning("events wait for room on disk", **self.fields, count=len(self._waiting), reason=str(error))
        except StorageFailed as error:
            self.broke(error, ())
        except Exception as error:
            self.distrust("journal flush", error)

    def _snapshot(self) -> None:
        """Write the whole state as one journal entry: once that is durable, what came before is history."""
        try:
            snapshot = self.core.snapshot()
        except Exception as error:
            # The journal is longer for it, and nothing worse.
            self.supervisor.crashed("snapshot", error, **self.fields)
            self.journal.put_snapshot_off()
            return
        at = self.journal.end
        # Counted anew first: a commit that is durable at once would ask for the next snapshot from within this one.
        before = self.journal.begin_anew(len(snapshot.state))
        self._waiting.append(snapshot)
        try:
            durable = self.commit(stage(self))
        except (StorageFull, StorageFailed):
            self.journal.as_before(before)
            self._waiting.remove(snapshot)
            return

        def fold(outcome: asyncio.Future[None]) -> None:
            if not outcome.cancelled() and outcome.exception() is None and not self._closed:
                self.supervisor.spawn("journal trim", self._fold(at), **self.fields)

        durable.when_done(fold)

    async def _fold(self, entry: int) -> None:
        try:
            await self.journal.fold(entry)
        except (SealaneError, OSError) as error:
            log.warning("the journal was not trimmed; the next snapshot tries", **self.fields, reason=str(error))

    # --- reading ------------------------------------------------------------------------------------------------------

    async def fetch(self, offset: int) -> Stored | None:
        """The batch that holds this offset, or the first one after it; None if there is none."""
        stored = self.engine.recent(self.key, offset) or self._read_ahead.find(self.key, offset)
        if stored is not None:
            return stored
        self.ticker.arm()  # What was leased just now may have to end while it is read.
        read = await self.engine.read(self.key, offset, bytes_max=READ_AHEAD_BYTES)
        self._read_ahead.keep(self.key, read)
        return read[0] if read else None

    def lose(self, start: int, stop: int) -> None:
        """The engine has no bytes for these offsets any more."""
        log.error("messages are damaged and lost; they were quarantined", **self.fields, first=start, last=stop - 1)
        self.note_journal([self.core.lose(start, stop, self.clock())])

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_lease(self, count: int) -> int:
        first = self._next_lease
        self._next_lease += count
        return first

    def revoked(self, subscription: Subscription, events: Sequence[SubscriptionEvent]) -> None:
        """Tell consumers what they no longer hold."""
        dispatcher = self.dispatchers.get(subscription.name)
        if dispatcher is None:
            return
        for event in events:
            if isinstance(event, Failed | Released):
                dispatcher.revoke(event.lease, unpack(event.offsets))

    def revoke_all(self, subscription: str) -> None:
        """A seek: whatever consumers hold is no longer theirs."""
        dispatcher = self.dispatchers.get(subscription)
        if dispatcher is not None:
            for lease in self.core.subscription(subscription).leases.by_id.values():
                dispatcher.revoke(lease.id, lease.offsets.copy())


def _consume_exception(outcome: asyncio.Future[None]) -> None:
    """The owner hears of a failed commit by `broke`; here it only must not be reported as never retrieved."""
    if not outcome.cancelled():
        outcome.exception()
