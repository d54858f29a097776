"""Reading a range of a partition, in order, each message once; the next read is under way meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from sealane.client.sync import SyncLane
from sealane.engine import Stored
from sealane.errors import TopicNotFound
from sealane.log import get_log
from sealane.spark.errors import DataLoss, Loss, TopicRecreated
from sealane.spark.options.access import Access, with_retries

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
    """The stored batches of the range in their order, cut to it.

    A lost connection is made again, and reading goes on where it was. Raises `NodeUnreachable` when that takes too
    long, `TopicRecreated` if the topic was deleted and made again, and `DataLoss` for messages that are gone; with
    `fail_on_data_loss` false they are left out, with a warning.
    """
    return cut_to(range, _read_ahead(access, range), fail_on_data_loss=fail_on_data_loss)


def cut_to(range: Range, found: Iterable[Stored], *, fail_on_data_loss: bool = True) -> Iterator[Stored]:
    """Of what was found, in its order, exactly the range. Raises `DataLoss` for what is missing, or warns of it."""
    position = range.start
    for base, batch in found:
        if base > position:
            _lose(range, position, min(base, range.stop), fail_on_data_loss)
            position = base
        stop = min(base + len(batch), range.stop)
        if position < stop:
            yield Stored(position, batch.slice(position - base, stop - base))
            position = stop
    if position < range.stop:
        _lose(range, position, range.stop, fail_on_data_loss)


def _lose(range: Range, start: int, stop: int, fail_on_data_loss: bool) -> None:
    if start >= range.stop:
        return
    loss = Loss(range.topic, range.partition, start, stop)
    if fail_on_data_loss:
        raise DataLoss([loss])
    log.warning("messages that were to be read are gone", lost=loss)


def _read_ahead(access: Access, range: Range) -> Iterator[Stored]:
    """What the node has of the range, to its end or to that of the log; the next read is under way meanwhile.

    One is enough: Spark takes some twenty milliseconds for what one read brings, and nodes are nearer than that.
    """
    if range.start >= range.stop:
        return
    reader = _Reader(access, range)
    ahead = ThreadPoolExecutor(1, "sealane-read")
    try:
        reading: Future[list[Stored]] | None = ahead.submit(reader.read, range.start)
        while reading is not None and (found := reading.result()):
            reading = ahead.submit(reader.read, found[-1].stop) if found[-1].stop < range.stop else None
            yield from found
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
