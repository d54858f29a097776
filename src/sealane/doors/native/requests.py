"""What a connection was asked and has not answered yet. Publishes take no task; the rest do, so many at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sealane.doors.intake import REQUEST_BYTES, Intake
from sealane.doors.native.commands import COMMANDS, CUT_SHORT, FINISHING, LARGE
from sealane.doors.native.consumers import NativeConsumer
from sealane.doors.native.outgoing import placed_shares
from sealane.doors.native.refusals import Refusals
from sealane.errors import Closed, SealaneError, Unavailable
from sealane.node.receipts import Receipts
from sealane.prompt import Prompt
from sealane.wire.errors import ProtocolError
from sealane.wire.messages import Attach, Publish, Published, PublishTo, Request

if TYPE_CHECKING:
    from sealane.doors.native.connection import NativeConnection

REQUESTS_RUNNING_MAX = 100
"""Requests of one connection that are carried out at a time, publishes not counted; the next ones wait."""


class _Waiting(NamedTuple):
    request: Any
    body: memoryview
    cost: int
    consumer: NativeConsumer | None
    """Of an `Attach`: whom it will attach."""


class Requests:
    """One connection's. Whatever is asked counts as in flight until it is answered, and is answered once."""

    __slots__ = ("_connection", "_intake", "_large", "_refusals", "_running", "_waiting")

    def __init__(self, connection: NativeConnection, intake: Intake) -> None:
        self._connection = connection
        self._intake = intake
        self._running: dict[asyncio.Task[None], type] = {}
        self._waiting: deque[_Waiting] = deque()
        self._refusals = Refusals()
        self._large: asyncio.Lock | None = None

    def cut_short(self) -> None:
        """The connection is gone: what nobody needs any more ends; the rest is short, and finishes."""
        for task, kind in self._running.items():
            if kind in CUT_SHORT:
                task.cancel()
        for waiting in self._waiting:
            self._intake.end(waiting.cost)
            if waiting.consumer is not None:
                waiting.consumer.never_attached()
        self._waiting.clear()

    def _check_open(self, kind: type) -> None:
        if self._connection.draining and kind not in FINISHING:
            raise Unavailable("the node is about to stop and did not do this; ask another one, or this one later")

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self, request: Publish, body: memoryview) -> None:
        session = self._connection.session
        try:
            self._check_open(Publish)
            self._refusals.check(request)
            batch = session.open_batch(body)
        except Exception as error:
            self._refuse_publish(request, error)
            return
        cost = len(body) + REQUEST_BYTES
        self._intake.begin(cost)
        # A refusal is known before what follows it is looked at.
        session.publish(request.topic, batch).when_done(partial(self._published, request, cost))

    def _published(self, request: Publish, cost: int, durable: Prompt[Receipts]) -> None:
        self._intake.end(cost)
        error = Closed("the node closed") if durable.cancelled() else durable.exception()
        if error is not None:
            self._refuse_publish(request, error)
        elif request.call and self._connection.speaking:
            self._connection.reply(request, Published(request.call, placed_shares(durable.result())))

    def _refuse_publish(self, request: Publish | PublishTo, error: BaseException) -> None:
        self._connection.refuse(request, error)
        self._refusals.note(request, error)

    # --- everything else ----------------------------------------------------------------------------------------------

    def take(self, request: Request, body: memoryview) -> None:
        consumer = None
        try:
            self._check_open(type(request))
            if isinstance(request, Attach):
                consumer = self._connection.add_consumer(request)
        except ProtocolError:
            raise
        except SealaneError as error:
            self._connection.refuse(request, error)
            return
        cost = len(body) + REQUEST_BYTES
        self._intake.begin(cost)
        self._waiting.append(_Waiting(request, body, cost, consumer))
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < REQUESTS_RUNNING_MAX:
            request, body, cost, _ = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._carry_out(request, body), name="native request")
            self._running[task] = type(request)
            task.add_done_callback(partial(self._carried_out, cost))
        if self._waiting:
            self._intake.hold("requests")
        else:
            self._intake.let_go("requests")

    def _carried_out(self, cost: int, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._intake.end(cost)
        self._start()

    async def _carry_out(self, request: Any, body: memoryview) -> None:
        connection = self._connection
        command = COMMANDS[type(request)]
        try:
            if type(request) is PublishTo:
                # Whether a rate limit refuses it shows before anything is waited for, so before the next one begins.
                self._refusals.check(request)
            if type(request) in LARGE:
                self._large = self._large or asyncio.Lock()
                async with self._large:
                    await connection.room_to_write()
                    connection.reply(request, *await command(connection, request, body))
            else:
                connection.reply(request, *await command(connection, request, body))
        except ProtocolError as error:
            connection.part(error)
        except Exception as error:
            if type(request) is PublishTo:
                self._refuse_publish(request, error)
            else:
                connection.refuse(request, error)
