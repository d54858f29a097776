"""What clients have recorded, put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Place = tuple[str, int, int]
"""(topic, partition, offset)."""
Settling = tuple[str, str, int, int]
"""(topic, subscription, partition, offset)."""


class Receipt(NamedTuple):
    """A message that a producer was told is durable."""

    topic: str
    name: str
    partition: int | None
    offset: int | None
    id: str | None


class Grant(NamedTuple):
    """A message as a consumer was handed it."""

    time_ns: int
    client: str
    topic: str
    subscription: str
    partition: int
    offset: int
    name: str
    attempt: int

    @property
    def settling(self) -> Settling:
        return self.topic, self.subscription, self.partition, self.offset


class Kept(NamedTuple):
    """A message that is in the log in the end."""

    partition: int
    offset: int
    id: str
    name: str


@dataclass
class History:
    """The sum of all records, in the order in which each client wrote them."""

    receipts: list[Receipt] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    """Names that were published and not confirmed: stored, or not."""
    grants: list[Grant] = field(default_factory=list)
    acking: set[Settling] = field(default_factory=set)
    """Somebody has asked to settle these."""
    acked: dict[Settling, int] = field(default_factory=dict)
    """Settled for good, and since when."""
    ended: list[str] = field(default_factory=list)

    def add(self, client: str, event: list[Any]) -> None:
        time_ns, what, *details = event
        if what == "publishing":
            self.unsure.update(details[1])
        elif what == "published":
            topic, stored = details
            self.receipts += [Receipt(topic, *each) for each in stored]
            self.unsure.difference_update(each[0] for each in stored)
        elif what == "granted":
            self.grants.append(Grant(time_ns, client, *details))
        elif what in ("acking", "acked"):
            topic, subscription, partition, offsets = details
            places = [(topic, subscription, partition, offset) for offset in offsets]
            if what == "acking":
                self.acking.update(places)
            else:
                for place in places:
                    self.acked.setdefault(place, time_ns)
        elif what == "ended":
            self.ended.append(f"{client}: {details[0]}: {details[1]}")

    def first_grants(self, topic: str, subscription: str) -> list[Grant]:
        """The first time that each message was handed to anybody, in the order of time."""
        seen: set[tuple[int, int]] = set()
        first = []
        for grant in sorted(self.grants):
            place = (grant.partition, grant.offset)
            if (grant.topic, grant.subscription) == (topic, subscription) and place not in seen:
                seen.add(place)
                first.append(grant)
        return first


class Follower:
    """Reads records while they grow."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.history = History()
        self.last_grant_ns: dict[str, int] = {}
        """By subscription."""
        self._read = dict.fromkeys(paths, 0)

    def follow(self) -> None:
        """Take in what is new; a line that is not finished waits."""
        for path, position in self._read.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(position)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[path] = position + len(whole)
            for line in whole.splitlines():
                event = json.loads(line)
                self.history.add(path.stem, event)
                if event[1] == "granted":
                    self.last_grant_ns[event[3]] = event[0]
