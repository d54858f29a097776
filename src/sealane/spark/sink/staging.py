"""What one attempt of a task has written: kept by the node, durable and unseen, until the driver publishes it, or not.

An attempt has a part of its own. Spark may run a task again, or twice at once; which attempt counts is known when the
driver has its commit message, and the parts of the others are never published.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import pyarrow as pa

from sealane.client.lane import Lane
from sealane.client.sealing import SealedOutgoing
from sealane.client.sync.lane import SyncLane
from sealane.client.topic_schemas import TopicSchema
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.message import Batch
from sealane.node.outgoing import Outgoing
from sealane.security.envelopes import PublicKey, Recipients
from sealane.spark.options.access import Access, lane_of, with_retries

PART_BYTES = 16
"""A part's name: random, so that no two attempts ever have the same."""
IN_FLIGHT_BYTES = 16 << 20
"""What a task sends ahead of the node's answers: enough to keep the node busy, and twice the largest batch."""
IN_FLIGHT_BATCHES = 256
"""The same for small batches, as rows of many topics make them: a connection has room for some thousand requests."""
DROP_SECONDS = 5.0
"""Parts that could not be dropped within this time are left to the node, which forgets them after a while."""

log = get_log("sealane.spark")


class StagedPart:
    """The batches of one attempt, numbered. Several are on their way at a time; the node confirms them in order."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.name = os.urandom(PART_BYTES)
        self.batches = 0
        self.rows = 0
        self.bytes = 0
        self._unsure: deque[_Sent] = deque()
        self._unsure_bytes = 0

    def add(self, topic: str, batch: Batch) -> None:
        """Send a batch, and wait while too much is on its way. Raises what the node has said of an earlier one."""
        meta = msgspec.structs.replace(batch.meta, producer=self.name, sequence=self.batches)
        numbered = batch.with_meta(meta)
        self.batches += 1
        self.rows += len(batch)
        self.bytes += batch.nbytes
        answer = self._send(topic, numbered)
        self._unsure.append(_Sent(topic, numbered, answer))
        self._unsure_bytes += numbered.nbytes
        if answer is None:
            self._send_again()
        while self._unsure_bytes > IN_FLIGHT_BYTES or len(self._unsure) > IN_FLIGHT_BATCHES:
            self._settle_first()

    def finish(self) -> None:
        """Return when everything is durable."""
        while self._unsure:
            self._settle_first()

    def drop(self) -> None:
        """Have the node forget it, if it can be told: nobody will publish it."""
        if self.batches:
            answers = [sent.answer.task for sent in self._unsure if sent.answer is not None]
            drop_parts(self._access, [self.name], answers)
            self._cancel_all()

    def _send(self, topic: str, batch: Batch) -> _Answer | None:
        with contextlib.suppress(SealaneError):
            lane = lane_of(self._access)
            return _Answer(lane, lane.portal.call(_begin, lane.lane, topic, batch))
        return None

    def _settle_first(self) -> None:
        answer = self._unsure[0].answer
        if answer is not None and answer.is_good():
            self._confirm_first()
        else:
            self._send_again()

    def _send_again(self) -> None:
        """One after the other, with patience: the node stores a batch once, however often it comes.

        What it has refused it refuses again, and that is raised.
        """
        self._cancel_all()
        while self._unsure:
            topic, batch, _ = self._unsure[0]
            with_retries(self._access, f"writing to topic {topic!r}", partial(_stage, topic, batch))
            self._confirm_first()

    def _confirm_first(self) -> None:
        self._unsure_bytes -= self._unsure.popleft().batch.nbytes

    def _cancel_all(self) -> None:
        for sent in self._unsure:
            if sent.answer is not None:
                sent.answer.cancel()


class _Sent(NamedTuple):
    """A batch that the node has not confirmed yet."""

    topic: str
    batch: Batch
    answer: _Answer | None
    """None: it could not even be sent."""


class _Answer:
    """What a node will say of a batch; it is awaited on the lane's own thread."""

    def __init__(self, lane: SyncLane, task: asyncio.Task[None]) -> None:
        self._portal = lane.portal
        self.task = task

    def is_good(self) -> bool:
        """Whether the node has the batch, once that is known."""
        with contextlib.suppress(SealaneError):
            self._portal.call(_outcome, self.task)
            return True
        return False

    def cancel(self) -> None:
        self._portal.soon(self.task.cancel)


def stage(access: Access, messages: Iterator[tuple[str, pa.RecordBatch]], recipients: Sequence[str] = ()) -> StagedPart:
    """A part with these messages, by topic; durable on return. If something fails the part is dropped, and it raises.

    `recipients` are public keys (PEM) that payloads are sealed for, end to end, before they leave this process.
    """
    part = StagedPart(access)
    outgoing: dict[str, Outgoing] = {}
    try:
        for topic, rows in messages:
            if rows.num_rows:
                if topic not in outgoing:
                    outgoing[topic] = _outgoing(access, topic, recipients)
                for batch in outgoing[topic].batches(rows):
                    part.add(topic, batch)
        part.finish()
    except BaseException:
        part.drop()
        raise
    return part


def drop_parts(access: Access, names: Sequence[bytes], under_way: Sequence[asyncio.Task[None]] = ()) -> None:
    """Have the node forget parts that nobody will publish. If it cannot be told soon, it does so by itself, later."""
    try:
        lane = lane_of(access)
        lane.portal.call(_drop, lane.lane, names, under_way)
    except (SealaneError, TimeoutError) as error:
        log.warning("staged rows could not be dropped", parts=len(names), problem=str(error))


def _outgoing(access: Access, topic: str, recipients: Sequence[str]) -> Outgoing:
    """What makes batches within the node's limits; those for recipients are checked by the schema, and sealed."""
    plain = with_retries(access, f"writing to topic {topic!r}", lambda lane: lane.lane.outgoing)
    if not recipients:
        return plain
    schema = with_retries(access, f"looking up the schema of {topic!r}", partial(_schema, topic))
    return SealedOutgoing(plain, Recipients(map(PublicKey.from_pem, recipients)), schema)


def _schema(topic: str, lane: SyncLane) -> TopicSchema | None:
    return lane.portal.call(lane.lane.schema_of, topic)


def _stage(topic: str, batch: Batch, lane: SyncLane) -> None:
    lane.stage(topic, batch)


async def _begin(lane: Lane, topic: str, batch: Batch) -> asyncio.Task[None]:
    return asyncio.create_task(lane.stage(topic, batch), name="stage a batch")


async def _outcome(task: asyncio.Task[None]) -> None:
    await task


async def _drop(lane: Lane, parts: Sequence[bytes], under_way: Sequence[asyncio.Task[None]]) -> None:
    """After what is on its way has arrived: the node would keep a batch that came later. What another lane has sent,
    which is gone by now, cannot be waited for.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DROP_SECONDS):
        await asyncio.gather(*(task for task in under_way if task.get_loop() is loop), return_exceptions=True)
        await lane.drop_staged(parts)
