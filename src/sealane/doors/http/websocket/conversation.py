"""What follows from what a client says over a WebSocket, once it is known who it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sealane._version import __version__
from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.doors.http.api.answers import receipts_json
from sealane.doors.http.message_shape import batch_of
from sealane.doors.http.starts import start_of
from sealane.doors.http.websocket.consumer import SocketConsumer
from sealane.doors.http.websocket.formats import Format
from sealane.doors.http.websocket.messages import (
    Ack,
    Credit,
    Extend,
    Hello,
    Nack,
    PackedPublish,
    Ping,
    Publish,
    Request,
    Subscribe,
    Unsubscribe,
)
from sealane.doors.http.websocket.problem_documents import problem_document
from sealane.doors.intake import REQUEST_BYTES, Intake
from sealane.errors import Closed, InvalidArgument, InvalidMessage, SealaneError, Unavailable
from sealane.node.following.position import Position
from sealane.node.outgoing import Outgoing
from sealane.node.receipts import Receipts
from sealane.node.session import Session
from sealane.node.starts import Start
from sealane.prompt import Prompt

if TYPE_CHECKING:
    from sealane.doors.http.websocket.conversations import Conversations

CONSUMERS_MAX = 100
"""Consumers of one connection."""
CREDIT_MESSAGES_MAX = 10_000
"""Messages that the consumers of a connection may have asked for or not have answered yet, all of them together: the
node keeps an entry for each of them."""
REQUESTS_RUNNING_MAX = 100
"""Requests of one connection that are carried out at a time, publishes not counted; it is not read from meanwhile."""

Say = Callable[[dict[str, Any]], None]


class Conversation:
    """One client's. Whatever is asked is answered once, if its call is not 0; what fails is told in any case."""

    def __init__(
        self, all_of_them: Conversations, name: str, session: Session, format: Format, intake: Intake, say: Say
    ) -> None:
        """`name` is unlike that of any other; `say` tells the client something, if it is still there."""
        self._all = all_of_them
        self._name = name
        self._session = session
        self._format = format
        self._intake = intake
        self._say = say
        self._outgoing = Outgoing(session.limits, session.surroundings)
        self._consumers: dict[int, SocketConsumer] = {}
        self._numbers = 0
        self._running: set[asyncio.Task[None]] = set()
        self._paused = False
        self._ended = False

    @property
    def busy(self) -> bool:
        """Whether something that was asked is not done, or something that was handed over not answered for."""
        return bool(self._intake.in_flight_bytes) or any(len(each.held) for each in self._consumers.values())

    def greet(self, call: int) -> None:
        """The first word: who the client is taken for, and how much it may ask for."""
        principal, limits = self._session.principal, self._session.limits
        welcome = {
            "type": "welcome",
            "principal": principal.name,
            "domain": principal.domain,
            "software": f"sealane/{__version__}",
            "limits": {
                "message_bytes": self._all.settings.body_bytes_max,
                "payload_bytes": limits.payload_bytes_max,
                "batch_bytes": limits.batch_bytes_max,
                "batch_messages": limits.batch_messages_max,
                "consumers": CONSUMERS_MAX,
                "credit": CREDIT_MESSAGES_MAX,
            },
        }
        self._say({**welcome, "call": call} if call else welcome)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        """One message. Raises `Unreadable` if it is none."""
        try:
            request = self._format.read(data)
        except InvalidMessage as error:
            self._refuse(self._format.call_of(data), error)
            return
        try:
            self._act_upon(request, len(data) + REQUEST_BYTES)
        except Exception as error:
            self._refuse(request.call, error)

    def _act_upon(self, request: Request, cost: int) -> None:
        if self._all.draining and isinstance(request, Publish | PackedPublish | Subscribe):
            raise Unavailable("the node is about to stop and did not do this; ask another one, or this one later")
        match request:
            case Publish() | PackedPublish():
                self._publish(request, cost)
            case Credit():
                self._give_credit(request)
                self._done(request.call)
            case Ack(call=0):
                self._consumer(request.consumer).settle(request)
            case Ping():
                self._answer(request.call, "pong")
            case Hello():
                raise InvalidArgument("hello", f"this connection is {self._session.principal.name!r}'s already")
            case _:
                self._take(request, cost)

    def _take(self, request: Request, cost: int) -> None:
        """Carry it out in a task of its own; they begin in the order in which they were asked."""
        self._intake.begin(cost)
        task = asyncio.get_running_loop().create_task(self._carry_out(request), name="websocket request")
        self._running.add(task)
        task.add_done_callback(partial(self._carried_out, cost))
        if len(self._running) >= REQUESTS_RUNNING_MAX:
            self._intake.hold("requests")

    def _carried_out(self, cost: int, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._intake.end(cost)
        if len(self._running) < REQUESTS_RUNNING_MAX:
            self._intake.let_go("requests")

    async def _carry_out(self, request: Request) -> None:
        try:
            match request:
                case Subscribe():
                    await self._subscribe(request)
                case Ack():
                    await self._consumer(request.consumer).ack(request)
                    self._done(request.call)
                case Nack():
                    await self._consumer(request.consumer).nack(request)
                    self._done(request.call)
                case Extend():
                    deadline = await self._consumer(request.consumer).extend(request)
                    self._answer(request.call, "done", deadline=deadline)
                case Unsubscribe():
                    await self._consumers.pop(self._consumer(request.consumer).number).unsubscribe()
                    self._done(request.call)
        except Exception as error:
            self._refuse(request.call, error)

    # --- answering ----------------------------------------------------------------------------------------------------

    def _done(self, call: int) -> None:
        self._answer(call, "done")

    def _answer(self, call: int, kind: str, **fields: Any) -> None:
        if call:
            self._say({"type": kind, "call": call, **fields})

    def _refuse(self, call: int, error: BaseException) -> None:
        if not isinstance(error, SealaneError):
            self._all.gate.supervisor.crashed("websocket request", error)
        self._all.gate.refused(error)
        said = {"type": "error", "problem": problem_document(error)}
        self._say({**said, "call": call} if call else said)

    # --- publishing ---------------------------------------------------------------------------------------------------

    def _publish(self, request: Publish | PackedPublish, cost: int) -> None:
        batch = batch_of(request.messages, self._outgoing)
        self._intake.begin(cost)
        # In this moment, so that messages are stored in the order in which they were said.
        self._session.publish(request.topic, batch).when_done(partial(self._published, request.call, cost))

    def _published(self, call: int, cost: int, durable: Prompt[Receipts]) -> None:
        self._intake.end(cost)
        error = Closed("the node closed") if durable.cancelled() else durable.exception()
        if error is not None:
            self._refuse(call, error)
        elif call and not self._ended:
            self._answer(call, "published", receipts=receipts_json([durable.result()]))

    # --- consumers ----------------------------------------------------------------------------------------------------

    async def _subscribe(self, wish: Subscribe) -> None:
        self._forget_ended()
        if len(self._consumers) >= CONSUMERS_MAX:
            raise InvalidArgument("subscribe", f"this connection has {CONSUMERS_MAX} consumers; open another one")
        self._check_room(wish.credit)
        self._numbers += 1
        number = self._numbers
        consumer = SocketConsumer(number, f"{self._name}:{number}", wish, self._format, self._say)
        self._consumers[number] = consumer
        try:
            attachment = await self._session.attach(
                wish.topic,
                wish.subscription,
                _config_of(wish),
                _start_of(wish.start),
                consumer.consumer,
                keep_retry=wish.retry is None,
            )
        except BaseException:
            self._consumers.pop(number, None)
            raise
        if number not in self._consumers:
            await attachment.end(node_stops=self._all.draining)
            raise Closed("the consumer had ended before it was attached")
        consumer.consumer.paused = self._paused
        positions = {str(partition): offset for partition, offset in attachment.positions().items()}
        self._answer(wish.call, "subscribed", consumer=number, positions=positions)
        consumer.begin(attachment)
        if self._all.draining:
            consumer.leave()

    def _consumer(self, number: int) -> SocketConsumer:
        found = self._consumers.get(number)
        if found is None:
            raise InvalidArgument("consumer", f"this connection has none of the number {number}")
        return found

    def _give_credit(self, request: Credit) -> None:
        consumer = self._consumer(request.consumer)
        self._check_room(request.messages)
        consumer.add_credit(request.messages)

    def _check_room(self, messages: int) -> None:
        if self._claims() + messages <= CREDIT_MESSAGES_MAX:
            return
        for consumer in self._consumers.values():
            consumer.tidy()
        claims = self._claims()
        if claims + messages > CREDIT_MESSAGES_MAX:
            problem = (
                f"{messages:,} more on {claims:,} that are asked for or unanswered is more than a connection may have"
            )
            raise InvalidArgument("credit", f"{problem}, {CREDIT_MESSAGES_MAX:,}; answer for some first")

    def _claims(self) -> int:
        return sum(consumer.claims for consumer in self._consumers.values())

    def _forget_ended(self) -> None:
        """Those that were told that nothing comes any more, and have answered for all that did."""
        for consumer in [each for each in self._consumers.values() if each.left]:
            consumer.tidy()
            if not len(consumer.held):
                del self._consumers[consumer.number]
                self._all.spawn(consumer.end())

    # --- all of them --------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """The client does not read: its consumers get no more, until what waits has become less."""
        self._paused = True
        for consumer in self._consumers.values():
            consumer.pause()

    def resume(self) -> None:
        self._paused = False
        for consumer in self._consumers.values():
            consumer.resume()

    def drain(self) -> None:
        """Nothing more is begun; what was is finished."""
        for consumer in self._consumers.values():
            consumer.leave()
        self._say({"type": "draining"})

    def end(self) -> None:
        """The connection is gone, or will be in a moment. Idempotent."""
        if self._ended:
            return
        self._ended = True
        consumers, self._consumers = list(self._consumers.values()), {}
        for consumer in consumers:
            consumer.leave()
            self._all.spawn(consumer.end(node_stops=self._all.draining))


def _config_of(wish: Subscribe) -> SubscriptionConfig:
    given = wish.retry
    retry = (
        Retry()
        if given is None
        else Retry(given.kind, given.delay_seconds, given.delay_seconds_max, given.attempts_max)
    )
    return SubscriptionConfig(wish.mode, wish.lease_seconds, wish.filter, retry)


def _start_of(text: str) -> Start:
    start = start_of(text)
    if isinstance(start, Position):
        return {partition: place.next for partition, place in start.places.items()}
    return start
