"""Messages that come as Arrow: `PublishBatches`, with many under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from sealane.doors.arrow_streams import read_batches
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.calls import Call
from sealane.doors.grpc.in_order import InOrder
from sealane.doors.grpc.room import Room
from sealane.node.authors import written_by
from sealane.node.receipts import Receipts, Share
from sealane.node.session import Session
from sealane.prompt import Prompt


class Publishing:
    """Serves the method, within the room that all calls share."""

    def __init__(self, room: Room, stream_bytes_max: int) -> None:
        self._room = room
        self._stream_bytes_max = stream_bytes_max

    async def publish_batches(self, session: Session, call: Call[pb.PublishBatchRequest]) -> None:
        room = Room(self._stream_bytes_max, self._room)
        answers = InOrder(call, room)
        await answers.run(_read(session, call, room, answers))


async def _read(session: Session, call: Call[pb.PublishBatchRequest], room: Room, answers: InOrder) -> None:
    while True:
        await room.wait()
        found = await call.next()
        if found is None:
            return
        request, nbytes = found
        batches = read_batches(request.arrow, session.surroundings.stamp(), limits=session.limits)
        durable: list[Prompt[Receipts]] = []
        for batch in batches:
            durable.append(session.publish(request.destination, written_by(batch, session.principal)))
            if _is_refused(durable[-1]):
                break  # What is behind it must not be stored without it.
        room.take(nbytes)
        answers.add(durable, nbytes, partial(_placed, sum(map(len, batches))))
        if _is_refused(durable[-1]):
            return


def _is_refused(durable: Prompt[Receipts]) -> bool:
    return durable.done() and (durable.cancelled() or durable.exception() is not None)


def _placed(messages: int, stored: Sequence[Receipts]) -> Iterable[pb.PublishBatchResponse]:
    shares = (share for receipts in stored for share in receipts.shares)
    yield pb.PublishBatchResponse(messages=messages, placed=[placed for share in shares for placed in _runs(share)])


def _runs(share: Share) -> Iterator[pb.Placed]:
    """Offsets that follow each other are one; messages that were stored before may lie anywhere."""
    if isinstance(share.offsets, range) and share.offsets.step == 1:
        yield pb.Placed(partition=share.partition, first_offset=share.offsets.start, count=len(share.offsets))
        return
    offsets = np.asarray(share.offsets, dtype=np.int64)
    for run in np.split(offsets, np.flatnonzero(np.diff(offsets) != 1) + 1):
        yield pb.Placed(partition=share.partition, first_offset=int(run[0]), count=len(run))
