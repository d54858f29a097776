"""Messages that come one by one: `SendMessage`, and `SendMessages` with many under way.

What comes on a stream while something of it is on its way to the disk goes together, as soon as that has landed; those
of one topic that came behind each other are one batch. So the disk is as busy with thousands of them as with one, and
nothing that came behind a refused message is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.calls import Call
from sealane.doors.grpc.in_order import InOrder
from sealane.doors.grpc.messages import row_of
from sealane.doors.grpc.room import Room
from sealane.message import Row
from sealane.node.authors import written_by
from sealane.node.outgoing import Outgoing
from sealane.node.receipts import Receipt, Receipts
from sealane.node.session import Session
from sealane.prompt import Prompt

BATCH_MESSAGES = 1_000
"""Messages of a stream that become one batch: more would keep the node's loop for longer than a few milliseconds."""
MESSAGE_BYTES = 1_024
"""What a message counts beside its bytes: about what the node keeps of it, so that many small ones count too."""


class Sending:
    """Serves both methods, within the room that all calls share."""

    def __init__(self, room: Room, stream_bytes_max: int) -> None:
        self._room = room
        self._stream_bytes_max = stream_bytes_max

    async def send_message(self, session: Session, request: pb.SendMessageRequest) -> pb.SendMessageResponse:
        outgoing = Outgoing(session.limits, session.surroundings)
        batch = written_by(outgoing.build([row_of(request.message, outgoing)]), session.principal)
        await self._room.wait()
        self._room.take(batch.nbytes)
        try:
            return _stored((await session.publish(request.message.destination, batch))[0])
        finally:
            self._room.give(batch.nbytes)

    async def send_messages(self, session: Session, call: Call[pb.SendMessageRequest]) -> None:
        stream = _Sent(session, call, Room(self._stream_bytes_max, self._room))
        await stream.answers.run(stream.read())


class _Given(NamedTuple):
    """A message that has come, and how many bytes it counts."""

    topic: str
    row: Row
    nbytes: int


class _Sent:
    """One stream."""

    def __init__(self, session: Session, call: Call[pb.SendMessageRequest], room: Room) -> None:
        self.answers = InOrder(call, room)
        self._session = session
        self._call = call
        self._room = room
        self._outgoing = Outgoing(session.limits, session.surroundings)
        self._given: list[_Given] = []
        """What waits for what is under way."""
        self._under_way = 0
        self._refused = False

    async def read(self) -> None:
        while not self._refused:
            await self._room.wait()
            found = await self._call.next()
            if found is None:
                return
            message, nbytes = found[0].message, found[1] + MESSAGE_BYTES
            given = _Given(message.destination, row_of(message, self._outgoing), nbytes)
            self._room.take(nbytes)
            self._given.append(given)
            if not self._under_way:
                self._publish()

    def _publish(self) -> None:
        """Hand over all that waits, in its order."""
        given, self._given = self._given, []
        for run in _runs(given, self._outgoing.limits.batch_bytes_max // 2):
            if self._refused:
                return
            try:
                self._begin(run)
            except Exception as error:
                if len(run) > 1:
                    self._begin_one_by_one(run)  # Those before the one at fault are fine.
                else:
                    self._refuse(error)

    def _begin_one_by_one(self, run: Sequence[_Given]) -> None:
        for given in run:
            try:
                self._begin([given])
            except Exception as error:
                self._refuse(error)
                return

    def _begin(self, run: Sequence[_Given]) -> None:
        batch = written_by(self._outgoing.build([given.row for given in run]), self._session.principal)
        self._under_way += 1
        durable = self._session.publish(run[0].topic, batch)
        self.answers.add([durable], sum(given.nbytes for given in run), _receipts)
        durable.when_done(self._landed)

    def _landed(self, durable: Prompt[Receipts]) -> None:
        self._under_way -= 1
        if durable.cancelled() or durable.exception() is not None:
            self._refused = True
        elif not self._under_way and self._given:
            self._publish()

    def _refuse(self, error: Exception) -> None:
        self._refused = True
        self.answers.refuse(error)


def _runs(given: Sequence[_Given], bytes_max: int) -> Iterator[Sequence[_Given]]:
    """What can be a batch: of one topic, all with ids of their own or none, not too many."""
    start = nbytes = 0
    for place, each in enumerate(given):
        first = given[start]
        if place > start and (
            each.topic != first.topic
            or (each.row.id is None) != (first.row.id is None)
            or place - start == BATCH_MESSAGES
            or nbytes + each.nbytes > bytes_max
        ):
            yield given[start:place]
            start, nbytes = place, 0
        nbytes += each.nbytes
    if given:
        yield given[start:]


def _receipts(stored: Sequence[Receipts]) -> Iterable[pb.SendMessageResponse]:
    return (_stored(receipt) for receipts in stored for receipt in receipts)


def _stored(receipt: Receipt) -> pb.SendMessageResponse:
    return pb.SendMessageResponse(id=str(receipt.id), partition=receipt.partition, offset=receipt.offset)
