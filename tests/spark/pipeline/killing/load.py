"""A client that publishes, consumes, gives up and forgets nothing: its own record is what the tables must say."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

import sealane

TOPICS = {"orders": 2, "payments": 2}
"""And how many partitions they begin with."""
SUBSCRIPTION = "billing"
ATTEMPTS_MAX = 3
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.02
SOON = 1e-6
"""Such a message has expired before anybody can have it."""


class Fate(StrEnum):
    """What becomes of a message."""

    ACKED = "is acked at once"
    REDELIVERED = "is nacked, and acked when it comes again"
    DEAD = "is nacked until it is dead"
    EXPIRED = "expires"
    LATE = "is held, and acked in the next round"
    POISON = "fits no schema, and is acked"
    REPEATED = "is published a second time under its id, and both are acked"


ROUND = (Fate.ACKED, Fate.ACKED, Fate.REDELIVERED, Fate.DEAD, Fate.EXPIRED, Fate.LATE, Fate.POISON, Fate.REPEATED)
DELIVERIES = {Fate.EXPIRED: 0, Fate.REDELIVERED: 2, Fate.DEAD: ATTEMPTS_MAX}
"""How often it is handed out, where that is not once."""


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int


@dataclass
class Sent:
    """A stored message, and what became of it."""

    id: UUID
    payload: bytes
    fate: Fate
    attempts: int = 0
    outcome: str | None = None
    reason: str | None = None


@dataclass
class Load:
    """`with Load(url) as load: load.publish(); load.consume()`, round after round."""

    url: str
    sent: dict[Place, Sent] = field(default_factory=dict)
    _held: list[tuple[Place, Any]] = field(default_factory=list)
    _rounds: int = 0

    def __enter__(self) -> Self:
        self.lane = sealane.connect_sync(self.url).open()
        for topic, partitions in TOPICS.items():
            # A topic that remembers no id but the last one: what is published again is stored again.
            self.lane.create_topic(topic, partitions=partitions, id_window_seconds=0)
            self.lane.administer("schema.register", topic=topic, schema=json.dumps(SCHEMA), validate=False)
        self._consumers = {topic: self._consumer(topic) for topic in TOPICS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lane.close()

    def round(self) -> None:
        """Some messages of every fate in every topic; and those that were held are acked."""
        for topic in TOPICS:
            for number, fate in enumerate(ROUND):
                self._publish(topic, f"{self._rounds}-{number}".encode(), fate)
        held, self._held = self._held, []
        for place, message in held:
            self._ack(place, message)
        for topic in TOPICS:
            self._consume(topic)
        self._rounds += 1
        self._wait_until_journalled()

    def add_partitions(self, topic: str, partitions: int) -> None:
        self.lane.configure_topic(topic, partitions=partitions)

    def history(self) -> Iterator[dict[str, Any]]:
        """What the node says has happened, a row for each run of offsets."""
        for log in self.lane.logs(*TOPICS):
            domain, _, topic = log.name.partition("/")
            for partition in log.partitions:
                entry = partition.journal_start
                while (part := self.lane.history(log.name, partition.partition, entry)).next_entry > entry:
                    entry = part.next_entry
                    for row in part.rows.to_pylist():
                        runs = row.pop("runs") or [{"first": None, "stop": None}]
                        where = {"domain": domain, "topic": topic, "partition": partition.partition}
                        yield from ({**row, **where, **run} for run in runs)

    def places(self) -> dict[UUID, list[Place]]:
        """Where each id is, in the order in which it was stored."""
        found: defaultdict[UUID, list[Place]] = defaultdict(list)
        for place, sent in self.sent.items():
            found[sent.id].append(place)
        return found

    def _publish(self, topic: str, key: bytes, fate: Fate) -> None:
        number: Any = len(self.sent)
        if fate is Fate.POISON:
            number = "none"
        payload = json.dumps({"number": number, "fate": fate}).encode()
        id, ttl = uuid4(), SOON if fate is Fate.EXPIRED else None
        self._store(topic, payload, fate, key=key, ttl=ttl, id=id)
        if fate is Fate.REPEATED:
            self._store(topic, payload, Fate.ACKED, key=key, id=uuid4())
            self._store(topic, payload, fate, key=key, id=id)

    def _store(self, topic: str, payload: bytes, fate: Fate, *, id: UUID, **more: Any) -> None:
        receipt = self.lane.publish(topic, payload, id=id, **more)
        place = Place(topic, receipt.partition, receipt.offset)
        assert place not in self.sent, "it was not stored again"
        self.sent[place] = Sent(id, payload, fate)

    def _consumer(self, topic: str) -> Iterator[Any]:
        # Nothing comes again because a lease has ended, however long a test takes.
        retry = sealane.Retry("fixed", 0.0, attempts_max=ATTEMPTS_MAX)
        return iter(self.lane.consume(topic, SUBSCRIPTION, lease_seconds=3600.0, retry=retry))

    def _consume(self, topic: str) -> None:
        """Take as many as this round's messages are handed out, and do with each what it is for."""
        new = [sent for place, sent in self.sent.items() if place.topic == topic and not sent.attempts]
        expected = sum(DELIVERIES.get(sent.fate, 1) for sent in new)
        for _ in range(expected):
            message = next(self._consumers[topic])
            place = Place(topic, message.partition, message.offset)
            sent = self.sent[place]
            assert (message.id, message.payload) == (sent.id, sent.payload)
            sent.attempts += 1
            if sent.fate is Fate.LATE:
                self._held.append((place, message))
            elif sent.fate is Fate.DEAD or (sent.fate is Fate.REDELIVERED and sent.attempts == 1):
                sent.reason = f"not at attempt {sent.attempts}"
                message.nack(reason=sent.reason, confirm=True)
                sent.outcome = "dead-lettered" if sent.attempts == ATTEMPTS_MAX else None
            else:
                self._ack(place, message)

    def _ack(self, place: Place, message: Any) -> None:
        message.ack(confirm=True)
        self.sent[place].outcome = "acked"

    def _wait_until_journalled(self) -> None:
        """What expires is handed to nobody: only the node says that it has."""
        waiting = {place for place, sent in self.sent.items() if sent.fate is Fate.EXPIRED and sent.outcome is None}
        deadline = time.monotonic() + WAIT_SECONDS
        while not waiting <= (expired := set(self._expired())):
            assert time.monotonic() < deadline, f"{waiting - expired} did not expire"
            time.sleep(LOOK_SECONDS)
        for place in waiting:
            self.sent[place].outcome = "expired"

    def _expired(self) -> Iterator[Place]:
        for row in self.history():
            if row["event"] == "expired":
                yield from (Place(row["topic"], row["partition"], at) for at in range(row["first"], row["stop"]))
