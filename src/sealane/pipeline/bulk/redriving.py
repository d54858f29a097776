"""Redrive: dead letters that the lake tells of go back to the subscriptions that had given them up.

The lake says which: it knows of each delivery why and when it ended. The node has them, in the dead-letter topic, and
is asked for exactly those. What has gone back is settled there in the same commit, so that the node itself knows what
is left: a job that was stopped goes on when it is called again, and another run finds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from sealane.delivery.offsets import take_first
from sealane.errors import SubscriptionNotFound, TopicNotFound
from sealane.message.arrow_compute import pc
from sealane.node.dead_letters import dead_topic_name
from sealane.pipeline.asking import read
from sealane.pipeline.bulk.asked import check_lake, check_period, check_rate, check_topic, understood
from sealane.pipeline.bulk.dead_letters import Wanted
from sealane.pipeline.lake.tables import DELIVERIES, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

PORTION_MESSAGES = 5_000
"""Asked for at once: scattered as they may be, their offsets are a small part of what a request may hold."""
BROWSE_BYTES = 4 << 20
_READER = ["domain", "topic", "subscription"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which dead letters, as the view `dead_letters` groups them. What is None is any."""

    domain: str | None = None
    topic: str | None = None
    """`domain/name`."""
    subscription: str | None = None
    cause: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """From when on, and up to when, they died."""
    where: str | None = None
    """A condition in Spark SQL over the columns of the deliveries."""

    def __post_init__(self) -> None:
        check_period(self.since, self.until)


@dataclass(slots=True)
class Group:
    """What became of the dead letters of one subscription."""

    topic: str
    subscription: str
    messages: int
    """How many were chosen, by the lake."""
    redriven: int = 0
    """How many went back; of a dry run: would go."""
    reasons: Counter[str] = field(default_factory=Counter)
    problem: str | None = None
    """Why they cannot go back, if they cannot."""


@dataclass(frozen=True, slots=True)
class Redriven:
    groups: list[Group]

    @property
    def messages(self) -> int:
        return sum(group.messages for group in self.groups)

    @property
    def redriven(self) -> int:
        return sum(group.redriven for group in self.groups)

    @property
    def before(self) -> int:
        """Those that do not wait any more: they went back before, by this command or another one."""
        return sum(group.messages - group.redriven for group in self.groups if group.problem is None)


class Reader(NamedTuple):
    """A subscription, and those of its deliveries that were chosen."""

    topic: str
    subscription: str
    deliveries: pa.Table


def choose(spark: SparkSession, lake: Lake, choice: Choice) -> list[Reader]:
    """What the lake tells of, by subscription. Have the lake meanwhile; what follows does without it."""
    return _by_reader(_chosen(spark, lake, choice))


def redrive(
    lane: SyncLane,
    readers: list[Reader],
    *,
    rate: float | None = None,
    dry_run: bool = False,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Redriven:
    """Send back what is chosen, at most `rate` messages a second. `told` hears how many are done with, of how many.

    A subscription or a topic that is gone is the problem of its group alone.
    """
    check_rate(rate)
    total = sum(len(reader.deliveries) for reader in readers)
    groups: list[Group] = []
    done = 0
    told(0, total)
    for reader in readers:
        group = Group(reader.topic, reader.subscription, len(reader.deliveries))
        groups.append(group)

        def tell(back: int, before: int = done, group: Group = group) -> None:
            told(before + group.redriven + back, total)

        try:
            for offsets in _waiting(lane, reader):
                report = lane.redrive(
                    reader.topic, reader.subscription, offsets=offsets, rate=rate, dry_run=dry_run, progress=tell
                )
                group.redriven += report.messages
                group.reasons.update(report.reasons)
        except (TopicNotFound, SubscriptionNotFound) as error:
            group.problem = str(error)
        done += group.messages
        told(done, total)
    return Redriven(groups)


def _chosen(spark: SparkSession, lake: Lake, choice: Choice) -> pa.Table:
    from pyspark.sql import functions as f

    check_lake(lake)
    if choice.topic is not None:
        check_topic(lake, DELIVERIES, choice.topic)
    columns = [*_READER, "partition", "offset", "id", "settled"]
    if not lake.exists(DELIVERIES):
        return pa.table({name: [] for name in columns})
    domain, _, topic = (choice.topic or "").partition("/")
    alike = {
        "domain": choice.domain or domain or None,
        "topic": topic or None,
        "subscription": choice.subscription,
        "cause": choice.cause,
        "reason": choice.reason,
    }
    deliveries = read(spark, lake, DELIVERIES).where("outcome = 'dead-lettered'")
    for name, value in alike.items():
        if value is not None:
            deliveries = deliveries.where(f.col(name) == f.lit(value))
    if choice.since is not None:
        deliveries = deliveries.where(f.col("settled") >= f.lit(choice.since))
    if choice.until is not None:
        deliveries = deliveries.where(f.col("settled") < f.lit(choice.until))
    with understood(choice.where):
        if choice.where is not None:
            deliveries = deliveries.where(choice.where)
        found: pa.Table = deliveries.select(*columns).toArrow()
    return found


def _by_reader(deliveries: pa.Table) -> list[Reader]:
    """The deliveries of each subscription, in the order of their names."""
    if not len(deliveries):
        return []
    found = (
        deliveries.select(_READER).group_by(_READER).aggregate([]).sort_by([(name, "ascending") for name in _READER])
    )
    readers = []
    for reader in found.to_pylist():
        is_its = pc.and_(
            pc.and_(pc.equal(deliveries["domain"], reader["domain"]), pc.equal(deliveries["topic"], reader["topic"])),
            pc.equal(deliveries["subscription"], reader["subscription"]),
        )
        name = f"{reader['domain']}/{reader['topic']}"
        readers.append(Reader(name, reader["subscription"], deliveries.filter(is_its)))
    return readers


def _waiting(lane: SyncLane, reader: Reader) -> Iterator[dict[int, BitMap64]]:
    """Where the wanted dead letters are in their topic, in portions; some of them may have gone back before."""
    deliveries = reader.deliveries
    times_us = deliveries["settled"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = (deliveries["partition"], deliveries["offset"], deliveries["id"], times_us)
    wanted = Wanted(zip(*(column.to_pylist() for column in columns), strict=True))
    dead = lane.describe_topic(dead_topic_name(reader.topic, reader.subscription))
    positions = {} if dead.redrive is None else dead.redrive.positions
    for partition in dead.partitions:
        found = BitMap64()
        at = max(partition.start, positions.get(partition.partition, partition.start))
        while at < partition.end:
            some = lane.browse(dead.name, partition.partition, at, bytes_max=BROWSE_BYTES, stop=partition.end)
            if not some:
                break
            for stored in some:
                found |= wanted.offsets_in(stored.batch.records, stored.base)
                at = max(at, stored.stop)
            while len(found) >= PORTION_MESSAGES:
                yield {partition.partition: take_first(found, PORTION_MESSAGES)}
        if found:
            yield {partition.partition: found}
