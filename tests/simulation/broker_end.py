"""The end of a simulated run, without faults: take all there is to take, and read what the logs hold."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from sealane.client.answers import Answers
from sealane.client.embedded import in_process
from sealane.node.attachment import Attachment
from sealane.node.dead_letters import PREFIX, dead_topic_name, headers_of
from sealane.node.topics import Topic
from tests.simulation.broker_consuming import Session
from tests.simulation.broker_operating import redrive
from tests.simulation.history import AckCalled, AckConfirmed, Dead, Drained, Logged, LogRead, Place, Redriven
from tests.simulation.labels import read_payload
from tests.simulation.workload import FOREVER_SECONDS, IN_MEMORY

if TYPE_CHECKING:
    from tests.simulation.broker_subject import Broker

QUIET_SECONDS = 2.0
"""How long nothing comes before one looks whether anything is left."""
QUIET_TIMES_MAX = 1_000
"""After so long without a message, what is left will not come: longer than any delay, retry or jump of the clock."""
READ_BYTES = 1 << 16


class Ending:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._record = broker.record

    async def run(self) -> None:
        topics = [topic for topic in self._broker.node.topics.values() if topic.engine is self._broker.engine]
        drains = []
        for topic in topics:
            names = [spec["name"] for spec in self._broker.specs.values() if spec["topic"] == topic.name]
            names += [name for name in topic.owners[0].core.subscriptions if name not in names and name[0] != "_"]
            drains += [self._drain(topic.name, name) for name in names]
        await asyncio.gather(*drains)
        await self._bring_back_the_dead()
        for topic in list(self._broker.node.topics.values()):
            if topic.is_system:
                continue
            if topic.name.endswith(".dead"):
                await self._read_dead(topic)
            elif topic.engine is self._broker.engine:
                await self._read(topic)
        await self._verify_audit()
        self._broker.look_inside()

    async def _verify_audit(self) -> None:
        """Where no byte was changed on the disk, the audit log is as it was written, whatever else has happened."""
        audit = self._broker.node.audit
        if audit.is_on and all(fault.kind != "bit_flip" for fault in self._broker.life.scenario.faults):
            _, findings = await audit.log.verify(lambda done, total: None)
            assert findings == [], findings

    async def _bring_back_the_dead(self) -> None:
        """Where the log keeps everything, so that all copies can be counted."""
        broker = self._broker
        for (topic, name), spec in broker.specs.items():
            config = broker.life.scenario.settings["topics"][topic]
            if config.get("retention_seconds") == FOREVER_SECONDS and spec["mode"] != "broadcast":
                await redrive(broker, topic, name)
                await redrive(broker, topic, name)  # There is nothing left for a second one.
                self._record(Redriven(topic, name, all_of_them=True))
                await self._drain(topic, name)

    async def _drain(self, topic: str, subscription: str) -> None:
        """Acknowledge everything that comes until nothing is left."""
        session = Session(self._broker, "last", topic, subscription)
        async with in_process(self._broker.node) as lane:
            consumption = session.consume(lane, prefetch=100)
            answers = await consumption.open()
            session.came(answers, settles=True)
            async with aclosing(aiter(consumption)) as items:
                await self._take_all(session, answers, items)
        session.ended(leases_end=True)
        self._record(Drained(session.topic_name, session.known_as))

    async def _take_all(self, session: Session, answers: Answers, items: Any) -> None:
        quiet = 0
        coming: asyncio.Task[Any] = asyncio.ensure_future(anext(items))
        while self._left(answers) and quiet < QUIET_TIMES_MAX:
            done, _ = await asyncio.wait({coming}, timeout=QUIET_SECONDS)
            if not done:
                quiet += 1
                continue
            quiet = 0
            message = coming.result()
            coming = asyncio.ensure_future(anext(items))
            session.granted(message)
            if not session.spec["auto_ack"]:
                who = (session.known_as, session.name, (session.place(message),))
                self._record(AckCalled(*who))
                await message.ack(confirm=True)
                self._record(AckConfirmed(*who))
        coming.cancel()
        await asyncio.wait({coming})

    def _left(self, answers: Answers) -> bool:
        attachment = cast(Attachment, answers.hold)
        found = [attachment.find(owner.key.partition) for owner in attachment.topic.owners]
        return any(reader.depth(owner.core.end) for owner, reader in found)

    async def _read(self, topic: Topic) -> None:
        name = self._broker.topic_name(topic)
        for partition, owner in enumerate(topic.owners):
            start = offset = owner.core.start
            while batches := await self._broker.node.browse(topic.full_name, partition, offset, bytes_max=READ_BYTES):
                for stored in batches:
                    for place, payload in enumerate(stored.batch.payloads(), start=stored.base):
                        if place >= offset:
                            only = stored.batch.meta.only
                            self._record(Logged(Place(name, partition, place), *read_payload(payload), only))
                offset = batches[-1].stop
            self._broker.note_lost()
            # The start moves with retention: what was trimmed while it was read is not claimed.
            self._record(LogRead(name, partition, max(start, owner.core.start), owner.core.end))

    async def _read_dead(self, topic: Topic) -> None:
        for partition in range(len(topic.owners)):
            offset = topic.owners[partition].core.start
            while batches := await self._broker.node.browse(topic.full_name, partition, offset, bytes_max=READ_BYTES):
                for stored in batches:
                    told = zip(headers_of(stored.batch), stored.batch.payloads(), strict=True)
                    for place, (headers, payload) in enumerate(told, start=stored.base):
                        if place >= offset and headers is not None:
                            self._note_dead(topic, headers, read_payload(payload)[0])
                offset = batches[-1].stop

    def _note_dead(self, topic: Topic, headers: dict[str, str], label: str) -> None:
        domain, name = headers[f"{PREFIX}topic"].split("/")
        subscription = headers[f"{PREFIX}subscription"]
        assert topic.full_name == f"{domain}/{dead_topic_name(name, subscription)}"
        origin = self._broker.node.topics.get(f"{domain}/{name}")
        if origin is None or name.partition(".")[0] == IN_MEMORY:
            return
        place = Place(
            self._broker.topic_name(origin), int(headers[f"{PREFIX}partition"]), int(headers[f"{PREFIX}offset"])
        )
        self._record(Dead(subscription, place, int(headers[f"{PREFIX}attempts"]), label))
