"""The whole broker: client, node, delivery core and local engine, for one life of the process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from sealane.client import Lane
from sealane.client.embedded import in_process
from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.engine import Opened, PartitionKey
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.engine.local.compaction import CompactionResult
from sealane.engine.local.compaction_plan import Plan
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.engine.local.files import Files
from sealane.engine.local.record import JOURNAL
from sealane.engine.local.recovery import Quarantined
from sealane.errors import StorageFailed
from sealane.node import Node, NodeSettings
from sealane.node.owner import PartitionOwner
from sealane.node.surroundings import Surroundings
from sealane.node.topics import Topic
from sealane.security.at_rest.sealing import Sealer
from tests.simulation.broker_consuming import Consuming
from tests.simulation.broker_end import Ending
from tests.simulation.broker_operating import Operating
from tests.simulation.broker_publishing import Publishing
from tests.simulation.history import DeclaredLost, Measured, Reread, Subscribed
from tests.simulation.scenario import Step
from tests.simulation.workload import IN_MEMORY, TEMPORARY
from tests.simulation.world import Life

EXCHANGE = "x"
WAITING_EVENTS_SLACK = 1_000
"""Events beyond the node's own limit that may wait while the disk is full: grants and acks of what is leased."""


def note_crash(task: str, error: BaseException) -> None:
    context = {"message": f"a supervised task crashed: {task}", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)


class Broker:
    """A running broker, and the names under which the record knows its parts."""

    node: Node
    engine: LocalEngine
    lane: Lane

    def __init__(self, life: Life) -> None:
        self.life = life
        self.record = life.record
        self.specs: dict[tuple[str, str], Mapping[str, Any]] = {
            (one["topic"], one["name"]): one for one in life.scenario.settings["subscriptions"]
        }
        self._subscribed: set[tuple[str, str]] = set()
        self._sessions = 0
        self._lost: set[tuple[PartitionKey, int, int]] = set()

    async def start(self) -> None:
        life, given = self.life, self.life.scenario.settings
        self.engine = await LocalEngine.start(
            life.files,
            settings=StorageSettings(
                segment_bytes_first=4_096,
                compaction_segments_min=2,
                compaction_segments_max=2,
                disk_free_bytes_min=0,
                **given["storage"],
            ),
            clock=life.clock_us,
            entropy=life.entropy,
            runner=life.runner,
            compactor=self._watched_compactor,
        )
        self._watch_openings()
        self._watch_quarantine()
        surroundings = Surroundings(life.clock_us, life.entropy)
        self.node = await Node.open(
            self.engine, surroundings, NodeSettings(**given["node"]), audited=given.get("audit", False)
        )
        # The broker would survive these; a simulation does not.
        self.node.supervisor.on_crash = note_crash
        self.lane = in_process(self.node)
        await self._set_up(given)

    async def _set_up(self, given: Mapping[str, Any]) -> None:
        for name, config in given["topics"].items():
            await self.lane.create_topic(name, **config)
        for (topic, name), spec in self.specs.items():
            if topic in given["topics"] and spec["mode"] != "broadcast":
                await self.node.subscribe(self.node.topic(topic), name, subscription_config(spec), "earliest")
                self.note_subscription(self.node.topic(topic), name, spec, settles=not spec["auto_ack"])
        if given["exchange"]:
            await self.lane.declare_exchange(EXCHANGE, "fanout")
            for topic in given["exchange"]:
                await self.lane.bind(EXCHANGE, topic)

    async def stop(self) -> None:
        await self.lane.close()
        await self.node.close()

    # --- names --------------------------------------------------------------------------------------------------------

    def topic_name(self, topic: Topic | PartitionKey) -> str:
        """A topic that was made again, or that lives in memory and began anew, is another one to the record."""
        if isinstance(topic, PartitionKey):
            name, incarnation = topic.topic, topic.incarnation
        else:
            name, incarnation = topic.name, topic.record.incarnation
        if name.partition(".")[0] == IN_MEMORY:
            return f"{name}~{self.life.number}"
        return f"{name}#{incarnation}" if name.partition(".")[0] == TEMPORARY else name

    def spec(self, topic: str, subscription: str) -> Mapping[str, Any]:
        return self.specs.get((topic, subscription)) or {
            "mode": "queue",
            "attempts_max": 16,
            "lease_seconds": 1.0,
            "retry": "fixed",
            "retry_seconds": 0.05,
            "only_key": None,
            "auto_ack": False,
        }

    def session(self, actor: str) -> str:
        self._sessions += 1
        return f"{actor}/{self.life.number}.{self._sessions}"

    def note_subscription(self, topic: Topic, name: str, spec: Mapping[str, Any], *, settles: bool) -> None:
        topic_name = self.topic_name(topic)
        if (topic_name, name) not in self._subscribed:
            self._subscribed.add((topic_name, name))
            self.record(
                Subscribed(
                    topic_name, name, spec["mode"], spec["attempts_max"], only_key=spec["only_key"], settles=settles
                )
            )

    # --- watching -----------------------------------------------------------------------------------------------------

    def _watch_openings(self) -> None:
        """Whatever the engine says is lost when a partition is opened is noted, and that it is opened once more."""
        engine_open = self.engine.open

        read_journal = self.engine.read_journal
        opened_before: set[PartitionKey] = set()

        def note_rereading(partition: PartitionKey) -> None:
            if partition in opened_before:
                self.record(Reread(self.topic_name(partition), partition.partition))

        async def watched_journal(
            partition: PartitionKey, offset: int, *, bytes_max: int | None = None
        ) -> list[tuple[int, bytes]]:
            entries = await read_journal(partition, offset, bytes_max=bytes_max)
            note_rereading(partition)
            opened_before.add(partition)
            return entries

        async def watched(partition: PartitionKey, *, sealed: bool = True) -> Opened:
            note_rereading(partition)
            opened = await engine_open(partition, sealed=sealed)
            for journal, spans in ((False, opened.lost), (True, opened.journal_lost)):
                for span in spans:
                    self._declare(partition, span.start, span.stop, journal=journal)
            return opened

        self.engine.open = watched  # type: ignore[method-assign]
        self.engine.read_journal = watched_journal  # type: ignore[method-assign]

    def _watched_compactor(self, files: Files, sealer: Sealer) -> InlineCompactor:
        """Whatever compaction leaves out as damaged is noted."""
        compactor = InlineCompactor(files, sealer, self.life.entropy)
        compact = compactor.compact

        async def watched(plan: Plan) -> CompactionResult:
            result = await compact(plan)
            for skipped in result.skipped:
                self._declare(
                    skipped.partition, skipped.base, skipped.base + skipped.count, journal=skipped.kind == JOURNAL
                )
            return result

        compactor.compact = watched  # type: ignore[method-assign]
        return compactor

    def _watch_quarantine(self) -> None:
        """What is found damaged is noted at once: a crash may come before anyone asks."""
        watched = _Watched(self._note_quarantined)
        watched.extend(self.engine.quarantined)
        for found in watched:
            self._note_quarantined(found)
        self.engine.quarantined = self.engine._reads.quarantined = watched

    def _note_quarantined(self, found: Quarantined) -> None:
        self._declare(found.partition, found.span.start, found.span.stop, journal=found.kind == JOURNAL)

    def note_lost(self) -> None:
        for owner in self.owners():
            for start, stop in owner.core.lost:
                if (owner.key, start, stop) not in self._lost:
                    self._lost.add((owner.key, start, stop))
                    self._declare(owner.key, start, stop, journal=False)

    def _declare(self, partition: PartitionKey, start: int, stop: int, *, journal: bool) -> None:
        self.record(DeclaredLost(self.topic_name(partition), partition.partition, start, stop, journal))

    def owners(self) -> list[PartitionOwner]:
        return [owner for topic in self.node.topics.values() for owner in topic.owners]

    def look_inside(self) -> None:
        """Bounds and invariants that no client can see; an `AssertionError` is a finding."""
        self.note_lost()
        limit = self.node.settings.journal_events_max + WAITING_EVENTS_SLACK
        for owner in self.owners():
            for subscription in (*owner.core.subscriptions.values(), *owner.core.members.values()):
                subscription.check(owner.core.visible)
            if (waiting := len(owner._waiting)) > limit:
                self.record(Measured(f"events that wait on {owner.key}", waiting, limit))


class _Watched(list[Quarantined]):
    """A list that tells what is added to it."""

    def __init__(self, tell: Callable[[Quarantined], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, found: Quarantined) -> None:
        super().append(found)
        self._tell(found)


def subscription_config(spec: Mapping[str, Any]) -> SubscriptionConfig:
    retry = Retry(spec["retry"], spec["retry_seconds"], max(2.0, spec["retry_seconds"]), spec["attempts_max"])
    return SubscriptionConfig(spec["mode"], spec["lease_seconds"], filter_of(spec), retry)


def filter_of(spec: Mapping[str, Any]) -> str | None:
    return None if spec["only_key"] is None else f"key = '{spec['only_key']}'"


class BrokerSubject:
    """Drives one life of the broker."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._broker = broker = Broker(life)
        self._verbs = {
            "publish": Publishing(broker).publish,
            "transact": Publishing(broker).transact,
            "consume": Consuming(broker).consume,
            "seek": Operating(broker).seek,
            "redrive": Operating(broker).redrive,
            "create": Operating(broker).create,
            "delete": Operating(broker).delete,
        }

    async def start(self) -> None:
        await self._broker.start()

    async def perform(self, step: Step) -> None:
        try:
            await self._verbs[step.verb](step)
            self._broker.look_inside()
        except StorageFailed as error:
            # What an operator does when the broker says that its disk has failed. A full one is no reason to say so.
            if self._broker.engine.failure is None and not isinstance(error.__cause__, sqlite3.Error):
                raise
            self._life.end(self._life.scenario.settings["after_failure"])

    async def finish(self) -> None:
        await Ending(self._broker).run()

    async def stop(self) -> None:
        await self._broker.stop()
