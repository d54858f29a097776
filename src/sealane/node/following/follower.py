"""A reader of a whole topic. Nothing is leased to it and nothing is kept for it: its position is all there is of it.

Priorities do not count, since the order is that of the log. What has expired or was addressed to one subscription is
passed over; what is delayed comes when it is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from sealane.delivery.config import SECOND_US
from sealane.delivery.filters import Filter
from sealane.delivery.offsets import from_array, span
from sealane.engine import Stored
from sealane.errors import InvalidArgument
from sealane.message import Batch
from sealane.node.deliveries import Part, cut
from sealane.node.following.partition_reader import Mask, Offsets, PartitionReader
from sealane.node.following.position import DELAYED_RUNS_MAX, FOLLOWED_PARTITIONS_MAX, Position, Run, incarnation_text
from sealane.node.owner import PartitionOwner
from sealane.node.starts import Start, check_start, offset_of
from sealane.node.topics import Topic

CHUNK_MESSAGES = 500
CHUNK_BYTES = 256 << 10
"""About what is read at once, so that others have their turn, and a reader that does not read on holds no more."""


class Followed(NamedTuple):
    """What was read at once. It may be nothing of use: then there may still be more behind it."""

    partition: int
    part: Part | None = None
    positions: tuple[str, ...] = ()
    """Where the reader is after each message of the part, or after what was lost."""
    lost: Run | None = None
    """Messages that are not stored any more."""


class Follower:
    """Made by `Session.follow`, ended by `close`. One task at a time reads."""

    def __init__(self, topic: Topic, matching: Filter | None, check: Callable[[], object]) -> None:
        """`check` raises as soon as the reader may not read on."""
        self._topic = topic
        self._matching = matching
        self._check = check
        self._news = asyncio.Event()
        self._readers: list[PartitionReader] = []
        self._worth_reading: dict[PartitionReader, None] = {}
        """Where there may be something, in the order of their turns."""
        self._without_room: dict[PartitionReader, None] = {}
        """Where the next message is delayed, and the position names too many of those already."""
        self.is_of_earlier_topic = False
        """Whether the position that it came with is of a topic that was deleted; it reads this one from its start."""

    async def begin(self, start: Start | Position) -> None:
        """Take a place in each partition. Raises `InvalidArgument`."""
        if not isinstance(start, Position):
            check_start(start)
        elif start.incarnation not in (None, self._topic.record.incarnation):
            self.is_of_earlier_topic = True
            start = "earliest"
        try:
            for owner in list(self._topic.owners):
                self._follow(await _reader(owner, start))
        except BaseException:
            self.close()
            raise

    def _follow(self, reader: PartitionReader) -> None:
        if len(self._readers) >= FOLLOWED_PARTITIONS_MAX:
            problem = f"has more than {FOLLOWED_PARTITIONS_MAX} partitions; consume it by a subscription"
            raise InvalidArgument("topic", f"{self._topic.full_name!r} {problem}")
        self._readers.append(reader)
        self._worth_reading[reader] = None
        reader.told = partial(self._committed, reader)
        reader.owner.told_of_commits.add(reader.told)

    def _committed(self, reader: PartitionReader) -> None:
        self._worth_reading[reader] = None
        self._news.set()

    def close(self) -> None:
        """Nothing more is read. Idempotent."""
        for reader in self._readers:
            if reader.told is not None:
                reader.owner.told_of_commits.discard(reader.told)

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Until there may be something to read, or for so long."""
        moments = [moment for reader in self._readers if (moment := reader.delayed.next_us()) is not None]
        if moments:
            seconds = min(seconds, max(0.0, (min(moments) - self._readers[0].owner.clock()) / SECOND_US))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def position(self) -> str:
        """Where the reader is, behind all that it was given."""
        return ",".join(reader.text() for reader in self._readers) + incarnation_text(self._topic.record.incarnation)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def read(self) -> Followed | None:
        """What comes next, of one partition; None if there is nothing for now. Raises what `check` does, and
        `TopicNotFound` once the topic was deleted.
        """
        self._news.clear()
        self._check()
        self._topic.check()
        for owner in self._topic.owners[len(self._readers) :]:
            self._follow(PartitionReader(owner, owner.core.start))
        self._worth_reading.update((reader, None) for reader in self._readers if reader.find_due())
        while self._worth_reading:
            reader = next(iter(self._worth_reading))
            del self._worth_reading[reader]
            followed = await self._read(reader)
            if followed is not None:
                self._worth_reading[reader] = None
                return followed
        return None

    async def _read(self, reader: PartitionReader) -> Followed | None:
        if reader.lost:
            return self._told_lost(reader, *reader.lost.pop(0))
        if reader.due:
            return await self._read_due(reader)
        first = reader.next
        if first >= reader.owner.core.visible:
            return None
        stored = await reader.owner.fetch(first)
        visible = reader.owner.core.visible
        if stored is None or stored.base > first:
            reader.next = visible if stored is None else min(stored.base, visible)
            return self._told_lost(reader, first, reader.next)
        return self._read_on(reader, stored, min(stored.stop, visible, first + _count(stored)))

    async def _read_due(self, reader: PartitionReader) -> Followed:
        """What was delayed, and has come due."""
        # Fewer are named from here on: those who wait for that may look again.
        self._worth_reading.update(self._without_room)
        self._without_room.clear()
        first = reader.due.min()
        stored = await reader.owner.fetch(first)
        if stored is None or stored.base > first:
            gone = reader.due & span(first, reader.due.max() + 1 if stored is None else stored.base)
            reader.due -= gone
            return self._told_lost(reader, gone.min(), gone.max() + 1)
        part, these = cut(stored, reader.due & span(first, first + _count(stored)))
        reader.due -= these
        if part is None or stored.batch.meta.only is not None:
            return Followed(reader.partition)
        offsets = np.asarray(part.offsets, dtype=np.uint64)
        chosen = reader.choose(part.batch, offsets, self._matching)
        reader.due |= from_array(offsets[chosen])  # Until each of them is given out.
        return self._given(reader, part.batch, offsets, chosen)

    def _read_on(self, reader: PartitionReader, stored: Stored, stop: int) -> Followed | None:
        """Rows of a batch in their order. None if the first of them is delayed, and can be passed over no more."""
        first = reader.next
        if stored.batch.meta.only is not None:
            reader.next = stop
            return Followed(reader.partition)
        rows = stored.batch.slice(first - stored.base, stop - stored.base)
        offsets = np.arange(first, stop, dtype=np.uint64)
        chosen = reader.choose(rows, offsets, self._matching)
        beyond = self._beyond_room(reader)
        if beyond is not None:
            reader.delayed.discard(span(beyond, stop))
            if beyond == first:
                self._without_room[reader] = None
                return None
            stop, count = beyond, beyond - first
            rows, offsets, chosen = rows.slice(0, count), offsets[:count], chosen[:count]
        followed = self._given(reader, rows, offsets, chosen)
        reader.next = stop
        return followed

    def _beyond_room(self, reader: PartitionReader) -> int | None:
        """The first offset that is delayed and can be passed over no more, if there is one."""
        if not reader.delayed:
            return None
        over = sum(len(each.later()) for each in self._readers) - DELAYED_RUNS_MAX
        return reader.later()[-over][0] if over > 0 else None

    def _given(self, reader: PartitionReader, rows: Batch, offsets: Offsets, chosen: Mask) -> Followed:
        if not chosen.any():
            return Followed(reader.partition)
        taken = offsets[chosen]
        batch = rows if chosen.all() else rows.take(np.flatnonzero(chosen))
        # The other partitions stay where they are meanwhile.
        at = self._readers.index(reader)
        before = "".join(f"{each.text()}," for each in self._readers[:at])
        after = "".join(f",{each.text()}" for each in self._readers[at + 1 :])
        after += incarnation_text(self._topic.record.incarnation)
        positions = tuple(f"{before}{place}{after}" for place in reader.give(taken.tolist()))
        return Followed(reader.partition, Part(taken, batch), positions)

    def _told_lost(self, reader: PartitionReader, first: int, stop: int) -> Followed:
        return Followed(reader.partition, None, (self.position(),), (first, stop))


async def _reader(owner: PartitionOwner, start: Start | Position) -> PartitionReader:
    if isinstance(start, Position):
        return PartitionReader.back(owner, start.places.get(owner.key.partition))
    return PartitionReader(owner, await offset_of(start, owner))


def _count(stored: Stored) -> int:
    """How many rows of it are read at once."""
    message_bytes = max(1, stored.batch.nbytes // len(stored.batch))
    return min(CHUNK_MESSAGES, max(1, CHUNK_BYTES // message_bytes))
