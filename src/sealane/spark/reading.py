"""Reading a range of a partition, in order, each message once; the next read is under way meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from sealane.client.sync import SyncLane
from sealane.engine import Stored
from sealane.errors import TopicNotFound
from sealane.log import get_log
from sealane.spark.access import Access, with_retries
from sealane.spark.errors import DataLoss, Loss, TopicRecreated

READ_BYTES = 4 << 20
"""What is asked for at a time."""

log = get_log("sealane.spark")


class Range(msgspec.Struct, frozen=True):
    """Messages of one partition: the offsets from `start` up to, and without, `stop`."""

    topic: str
    """Its full name."""
    incarnation: int
    """Which topic of that name."""
    partition: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"topic {self.topic!r} partition {self.partition} offsets [{self.start}, {self.stop})"


def read(access: Access, range: Range, *, fail_on_data_loss: bool = True) -> Iterator[Stored]:
    """The stored batches of the range, the first and the last of them cut to it.

    A lost connection is made again and goes on where it was. Raises `NodeUnreachable` when that takes too long,
    `TopicRecreated` if this topic is gone and another has its name, and `DataLoss` for messages that are gone; or
    else, with `fail_on_data_loss` false, leaves those out with a warning.
    """
    reader = _Reader(access, range)
    ahead = ThreadPoolExecutor(1, "sealane-read")
    try:
        position = range.start
        reading = ahead.submit(reader.read, position) if position < range.stop else None
        while reading is not None:
            found = reading.result()
            stop = found[-1].stop if found else range.stop
            reading = ahead.submit(reader.read, stop) if stop < range.stop else None
            for stored in found:
                if position < stored.base:
                    _lose(range, position, min(stored.base, range.stop), fail_on_data_loss)
                if (part := _between(stored, max(position, stored.base), range.stop)) is not None:
                    yield part
                position = max(position, stored.stop)
        if position < range.stop:
            _lose(range, position, range.stop, fail_on_data_loss)
    finally:
        # Who has enough, as by `limit`, does not wait for a read that nobody needs.
        reader.abandoned.set()
        ahead.shutdown(wait=False, cancel_futures=True)


class _Reader:
    def __init__(self, access: Access, range: Range) -> None:
        self._access = access
        self._range = range
        self.abandoned = threading.Event()
        """Nobody waits for what is read any more."""

    def read(self, offset: int) -> list[Stored]:
        """Some batches from there on; none at the end of the log."""
        wanted = self._range

        def browse(lane: SyncLane) -> list[Stored]:
            return lane.browse(
                wanted.topic,
                wanted.partition,
                offset,
                bytes_max=READ_BYTES,
                incarnation=wanted.incarnation,
                stop=wanted.stop,
            )

        what = f"reading topic {wanted.topic!r} partition {wanted.partition} from offset {offset}"
        try:
            return with_retries(self._access, what, browse, abandoned=self.abandoned)
        except TopicNotFound as error:
            raise self._why_not_found(error) from None

    def _why_not_found(self, error: TopicNotFound) -> Exception:
        topic = self._range.topic
        try:
            found = with_retries(self._access, f"looking for topic {topic!r}", lambda lane: lane.logs(topic))
        except TopicNotFound:
            return error
        return TopicRecreated(topic, self._range.incarnation, found[0].incarnation)


def _between(stored: Stored, start: int, stop: int) -> Stored | None:
    """The messages from `start` to before `stop`; None if there are none."""
    base, batch = stored
    first, last = start - base, min(stop - base, len(batch))
    if first >= last:
        return None
    return Stored(start, batch.slice(first, last))


def _lose(range: Range, start: int, stop: int, fail: bool) -> None:
    loss = Loss(range.topic, range.partition, start, stop)
    if fail:
        raise DataLoss([loss])
    log.warning("messages are gone that were to be read", topic=range.topic, partition=range.partition, offsets=loss)
