"""Taking messages: `PullMessages` and `PullBatches`.

What was pulled is answered in pieces that every client takes, each with a lease of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from google.protobuf.message import Message

from sealane.doors.arrow_streams import written
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.calls import Call
from sealane.doors.grpc.messages import messages_of, seconds_of, timestamp_of
from sealane.errors import InvalidArgument, RateLimited
from sealane.node.pulling.opened import Opened
from sealane.node.pulling.pieces import give_back, pieces
from sealane.node.pulling.pull import PULL_MESSAGES_MAX, PULL_WAIT_SECONDS_MAX, Pulled
from sealane.node.session import Session

MESSAGES_DEFAULT = 100
ANSWER_BYTES = 3 << 20
"""About what one answer holds: clients of gRPC refuse more than 4 MiB unless they are told otherwise."""
ANSWER_MESSAGES = 500
"""Messages of one answer, where each is an object: making more of them would keep the node's loop for too long."""
ANSWER_ROWS = 100_000
"""The same of Arrow, where they are not."""


class Pulling:
    """Serves both methods. `node_id` is what messages have passed."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id

    async def pull_messages(self, session: Session, call: Call[pb.PullMessagesRequest]) -> None:
        def answer(piece: Pulled) -> Message:
            now_us = session.surroundings.clock()
            return pb.PullMessagesResponse(
                lease=piece.lease,
                deadline=timestamp_of(piece.deadline_us),
                messages=(
                    message for delivery in piece.deliveries for message in messages_of(delivery, now_us, self._node_id)
                ),
            )

        await _pull(session, call, answer, ANSWER_MESSAGES)

    async def pull_batches(self, session: Session, call: Call[pb.PullMessagesRequest]) -> None:
        await _pull(session, call, _arrow, ANSWER_ROWS)


def _arrow(piece: Pulled) -> Message:
    return pb.PullBatchResponse(
        lease=piece.lease, deadline=timestamp_of(piece.deadline_us), arrow=written(piece).to_pybytes()
    )


async def _pull(
    session: Session, call: Call[pb.PullMessagesRequest], answer: Callable[[Pulled], Message], messages_max: int
) -> None:
    request = await call.only()
    if not 0 <= request.max_messages <= PULL_MESSAGES_MAX:
        problem = f"{request.max_messages:,} is not in 1 to {PULL_MESSAGES_MAX:,} messages"
        raise InvalidArgument("max_messages", f"{problem}; 0 is {MESSAGES_DEFAULT}")
    async with aclosing((_follow if request.follow else _take)(session, request)) as pulls:
        async for pulled in pulls:
            waiting = pieces(pulled, bytes_max=ANSWER_BYTES, messages_max=messages_max)
            try:
                while waiting:
                    await call.answer(answer(waiting[0]))
                    del waiting[0]
            finally:
                for piece in waiting:
                    give_back(piece)


async def _take(session: Session, request: pb.PullMessagesRequest) -> AsyncGenerator[Pulled, None]:
    """As many as were asked for, or until none comes for as long as it is waited."""
    left = request.max_messages or MESSAGES_DEFAULT
    wait_seconds = seconds_of(request.wait)
    while True:
        pulled = await session.pull(
            request.destination, request.subscription, messages_max=left, wait_seconds=wait_seconds
        )
        left -= len(pulled)
        if pulled.lease is not None:
            yield pulled
        if pulled.lease is None or not left:
            return


async def _follow(session: Session, request: pb.PullMessagesRequest) -> AsyncGenerator[Pulled, None]:
    """For ever, with so many open at a time."""
    opened = Opened(request.subscription, request.max_messages or MESSAGES_DEFAULT)
    try:
        while True:
            try:
                pulled = await session.pull(
                    request.destination,
                    request.subscription,
                    messages_max=await opened.room(),
                    wait_seconds=PULL_WAIT_SECONDS_MAX,
                )
            except RateLimited as error:
                # It is the node that asks again and again, and not the client.
                await asyncio.sleep(error.retry_after_seconds)
                continue
            opened.add(pulled)
            if pulled.lease is not None:
                yield pulled
    finally:
        opened.close()
