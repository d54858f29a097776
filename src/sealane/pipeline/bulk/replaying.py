"""Replay: messages of the lake are published once more, in their order, each once however often the job is begun.

The job goes in portions: so many offsets of one partition, cut where they get long. A portion is one transaction whose
id says which it is, and once it is done it is noted in the lake. A job that was stopped goes on by being called again
under the same name; what it had published and not noted, the node knows by the transaction. How far the job goes is
noted when it begins: what comes into the lake after that is not its matter.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sealane.errors import SealaneError
from sealane.message.arrow_compute import pc
from sealane.pipeline.asking import read
from sealane.pipeline.bulk.asked import check_lake, check_period, check_rate, check_topic, understood
from sealane.pipeline.lake.tables import RAW_MESSAGES, Lake
from sealane.pipeline.secrets.keeping import keys_of
from sealane.whole_files import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from sealane.client.sync import SyncLane

PORTION_OFFSETS = 10_000
"""How many offsets of a partition are read at once: enough for the node to store them as one batch."""
PORTION_BYTES = 4 << 20
"""Where a portion is cut: a transaction travels in one frame, which takes three times as much."""
_PUBLISHED = ("key", "payload", "headers", "priority")
"""What a message has of the one that it repeats: its id, its time and how long it lives are its own."""
_ENDS = "ends "


class NoPayloads(SealaneError):
    """The lake has messages without what was in them."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is replayed, and where to."""

    topic: str
    """`domain/name` as the lake has it."""
    target: str
    since: datetime | None = None
    until: datetime | None = None
    """From when on, and up to when, messages were created."""
    where: str | None = None
    """A condition in Spark SQL over the columns of the table."""
    rate: float | None = None
    """Messages a second, at most."""
    name: str = ""
    """Under which name it goes on. Without one, that of the rest of the order: the same order is the same job."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_period(self.since, self.until)

    @property
    def job(self) -> str:
        told = repr((self.topic, self.target, self.since, self.until, self.where, self.name))
        return hashlib.sha256(told.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Replayed:
    messages: int
    """How many the order is about."""
    published: int
    before: int
    """How many an earlier try had published."""


def replay(
    spark: SparkSession,
    lake: Lake,
    lane: SyncLane,
    order: Order,
    keys: Path,
    *,
    dry_run: bool = False,
    told: Callable[[int, int], None] = lambda done, total: None,
    wait: Callable[[float], None] = time.sleep,
) -> Replayed:
    """Publish what the order says. `keys` is the lake's key file. `told` hears how many messages are done, of how many.

    Raises `NoPayloads`, and `KeyUnavailable` if bodies are sealed by a key that is not there.
    """
    notes = _Notes(lake.root / "_jobs" / f"replay-{order.job}")
    with understood(order.where):
        messages = _within(_chosen(spark, lake, order), notes.ends)
        portions = _portions(messages)
    total = sum(portion.messages for portion in portions)
    missing = sum(portion.without for portion in portions if _place(portion) not in notes)
    if missing:
        raise NoPayloads(
            f"the lake has {missing:,} messages of {order.topic} without their payloads: they were forgotten, and "
            "--where 'payload IS NOT NULL' leaves them out, or taken in with --bodies left-out; what the node still "
            "has can be taken in again, by a run with --bodies sealed into another lake"
        )
    if any(portion.sealed for portion in portions):
        keys_of(lake, keys)  # Whether they are there is known before anything is begun.
    if dry_run:
        return Replayed(total, 0, sum(portion.messages for portion in portions if _place(portion) in notes))
    if portions and notes.ends is None:
        notes.begin({portion.partition: portion.last + 1 for portion in portions})
        messages = _within(messages, notes.ends)
    pace = _Pace(order.rate, wait)
    published = before = 0
    for portion in portions:
        place = _place(portion)
        if place in notes:
            before += portion.messages
        else:
            done = _publish(lane, order, place, _opened(_rows(messages, portion), order.topic, lake, keys), pace)
            published += done
            before += portion.messages - done
            notes.add(place)
        told(published + before, total)
    return Replayed(total, published, before)


def _chosen(spark: SparkSession, lake: Lake, order: Order) -> DataFrame:
    from pyspark.sql import functions as f

    check_lake(lake)
    check_topic(lake, RAW_MESSAGES, order.topic)
    domain, _, topic = order.topic.partition("/")
    messages = read(spark, lake, RAW_MESSAGES).where((f.col("domain") == domain) & (f.col("topic") == topic))
    if order.since is not None:
        messages = messages.where(f.col("created") >= f.lit(order.since))
    if order.until is not None:
        messages = messages.where(f.col("created") < f.lit(order.until))
    return messages if order.where is None else messages.where(order.where)


def _within(messages: DataFrame, ends: dict[int, int] | None) -> DataFrame:
    """Those that the job is about, if it has begun before."""
    if ends is None:
        return messages
    return messages.where(" OR ".join(f"(partition = {each} AND offset < {end})" for each, end in ends.items()))


def _place(portion: Row) -> str:
    return f"{portion.partition}/{portion.portion}"


def _portions(messages: DataFrame) -> list[Row]:
    """Which portions there are, in their order, each with how many messages it has, and how many without a payload."""
    from pyspark.sql import functions as f

    return (
        messages.groupBy("partition", f.expr(f"offset DIV {PORTION_OFFSETS}").alias("portion"))
        .agg(
            f.count("*").alias("messages"),
            f.count_if(f.col("payload").isNull()).alias("without"),
            f.count("sealed_by").alias("sealed"),
            f.max("offset").alias("last"),
        )
        .orderBy("partition", "portion")
        .collect()
    )


def _rows(messages: DataFrame, portion: Row) -> pa.Table:
    first = portion.portion * PORTION_OFFSETS
    return (
        messages.where(f"partition = {portion.partition} AND offset BETWEEN {first} AND {first + PORTION_OFFSETS - 1}")
        .orderBy("offset")
        .select("id", *_PUBLISHED, "sealed_by")
        .toArrow()
    )


def _opened(rows: pa.Table, topic: str, lake: Lake, keys: Path) -> pa.Table:
    """The same with payloads that can be read, where the lake has them sealed."""
    if rows["sealed_by"].null_count == len(rows):
        return rows
    domains = pa.repeat(topic.partition("/")[0], len(rows))
    sealed = rows["sealed_by"].is_valid()
    nothing = pa.scalar(None, pa.binary())
    ids, payloads = rows["id"].combine_chunks(), pc.if_else(sealed, rows["payload"], nothing).combine_chunks()
    opened = keys_of(lake, keys).open_column(domains, ids, payloads)
    place = rows.schema.get_field_index("payload")
    return rows.set_column(place, "payload", pc.coalesce(pa.chunked_array([opened]), rows["payload"]))


def _publish(lane: SyncLane, order: Order, place: str, rows: pa.Table, pace: _Pace) -> int:
    """Returns how many were published now, and not before."""
    published = 0
    for number, part in enumerate(_cut(rows.select(_PUBLISHED))):
        with lane.transaction(f"replay/{order.job}/{place}/{number}") as transaction:
            transaction.publish_many(order.target, part)
        if not transaction.replayed:
            published += len(part)
            pace.spend(len(part))
    return published


def _cut(rows: pa.Table) -> Iterator[pa.Table]:
    """The same rows, in parts that one transaction takes; cut alike whenever it is done."""
    start = size = 0
    for place, payload in enumerate(rows["payload"]):
        length = len(payload.as_buffer())
        if place > start and size + length > PORTION_BYTES:
            yield rows.slice(start, place - start)
            start, size = place, 0
        size += length
    if len(rows) > start:
        yield rows.slice(start)


class _Notes:
    """How far the job goes, in the first line, and which portions are done, a line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        told = [line.removeprefix(_ENDS) for line in lines if line.startswith(_ENDS)]
        self.ends: dict[int, int] | None = None
        """The offset before which it ends, by partition; None: it was never begun."""
        if told:
            self.ends = {int(partition): end for partition, end in json.loads(told[0]).items()}
        self._done = set(lines)

    def __contains__(self, place: str) -> bool:
        return place in self._done

    def begin(self, ends: dict[int, int]) -> None:
        """The portions come in order, so that a partition's last one has its end."""
        self._write(f"{_ENDS}{json.dumps(ends)}")
        self.ends = ends

    def add(self, place: str) -> None:
        self._write(place)
        self._done.add(place)

    def _write(self, line: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(f"{line}\n")
        sync(self._path)


class _Pace:
    """At most so many a second, over the whole job."""

    def __init__(self, per_second: float | None, wait: Callable[[float], None]) -> None:
        self._per_second = per_second
        self._wait = wait
        self._due = time.monotonic()

    def spend(self, count: int) -> None:
        if self._per_second is not None:
            self._due = max(self._due, time.monotonic()) + count / self._per_second
            self._wait(max(0.0, self._due - time.monotonic()))
