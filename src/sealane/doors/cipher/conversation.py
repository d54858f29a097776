"""What follows from what a client says: its commands are carried out one after the other, and answered in that order.

Those that belong together, such as acks that came in one packet, are carried out as one. Meanwhile messages are pushed,
and others are served: a command that waits for the disk stops nobody but the commands behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from sealane.doors.cipher.acknowledging import Acknowledging
from sealane.doors.cipher.attached import AttachedConsumers
from sealane.doors.cipher.outgoing import Outgoing
from sealane.doors.cipher.publishing import Publisher
from sealane.errors import SealaneError
from sealane.node.session import Session
from sealane.wire.cipher import replies
from sealane.wire.cipher.commands import (
    Ack,
    Bind,
    Command,
    Consume,
    DeclareExchange,
    DeclareQueue,
    Fetch,
    Publish,
    PublishBatch,
)

if TYPE_CHECKING:
    from sealane.doors.cipher.connection import CipherConnection

RUN_COMMANDS_MAX = 1_000
"""Commands that are carried out as one."""
RUN_BYTES_MAX = 1 << 20
"""Of their lines together."""
UNEXPECTED = "the node failed unexpectedly at this; its log tells more"


class Waiting(NamedTuple):
    """A command, or what is wrong with the line that should have been one."""

    said: Command | SealaneError
    cost: int


class Conversation:
    """One client's. Whatever is said is answered once."""

    def __init__(self, connection: CipherConnection, session: Session) -> None:
        self._connection = connection
        self._door = connection.door
        self._settings = connection.door.settings
        self._session = session
        self._publisher = Publisher(session, connection.full_name, connection.door.lives)
        self.consumers = AttachedConsumers(connection, session)
        self._waiting: deque[Waiting] = deque()
        self._working = False
        self._held_back: list[bytes] = []
        """Messages that are pushed when the command that is being carried out is answered."""

    @property
    def busy(self) -> bool:
        """Whether something that was said is not answered."""
        return self._working

    # --- in order -----------------------------------------------------------------------------------------------------

    def take(self, said: Command | SealaneError, cost: int) -> None:
        """Carry it out after those before it. `cost` counts as in flight until it is answered."""
        self._connection.intake.begin(cost)
        self._waiting.append(Waiting(said, cost))
        if not self._working:
            self._working = True
            _ = self._door.spawn("cipher commands", self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._connection.room_to_write()
                run = self._next_run()
                try:
                    await self._carry_out(run)
                finally:
                    self._connection.intake.end(sum(waiting.cost for waiting in run))
                self._push_held_back()
        finally:
            self._working = False
            self._connection.answered_all()

    def _next_run(self) -> list[Waiting]:
        """The next command, and those behind it that go with it."""
        run = [self._waiting.popleft()] if self._waiting else []
        cost = run[0].cost if run else 0
        while self._waiting and len(run) < RUN_COMMANDS_MAX:
            following = self._waiting[0]
            cost += following.cost
            if cost > RUN_BYTES_MAX or not _go_together(run[0].said, following.said):
                break
            run.append(self._waiting.popleft())
        return run

    async def _carry_out(self, run: Sequence[Waiting]) -> None:
        said = [waiting.said for waiting in run]
        try:
            await self._answer(said)
        except SealaneError as error:
            self._say(self._refusal(error) for _ in said)
        except Exception as error:
            self._door.gate.supervisor.crashed("cipher commands", error, command=type(said[0]).__name__)
            self._say(replies.error(UNEXPECTED) for _ in said)

    async def _answer(self, run: Sequence[Command | SealaneError]) -> None:
        """Of several, all are of the kind of the first."""
        if not run:
            return
        match run[0]:
            case SealaneError():
                self._say(self._refusal(cast(SealaneError, error)) for error in run)
                await asyncio.sleep(0)  # A heap of them must not keep others waiting.
            case Publish():
                outcomes = await self._publisher.publish(cast(Sequence[Publish], run))
                self._say(
                    self._refusal(each) if isinstance(each, SealaneError) else replies.acknowledged([each])
                    for each in outcomes
                )
            case PublishBatch() as batch:
                self._say([replies.acknowledged(await self._publisher.publish_batch(batch))])
            case Ack():
                await self._acknowledge([ack.message_id for ack in cast(Sequence[Ack], run)])
            case DeclareQueue(queue):
                topic, config = self._connection.full_name(queue), self._settings.subscription_config
                await self._session.subscribe(topic, self._settings.subscription, config, "earliest")
                self._say([replies.QUEUE_DECLARED])
            case DeclareExchange(exchange):
                await self._session.declare_exchange(self._connection.full_name(exchange), "direct")
                self._say([replies.EXCHANGE_DECLARED])
            case Bind(queue, exchange, routing_key):
                full_name = self._connection.full_name
                await self._session.bind(full_name(exchange), full_name(queue), routing_key)
                self._say([replies.QUEUE_BOUND])
            case Consume(queue):
                await self._consume(queue)
            case Fetch(queue):
                await self._fetch(queue)

    def _say(self, lines: Iterable[bytes]) -> None:
        self._connection.say(b"".join(lines))

    def _push(self, messages: Sequence[Outgoing]) -> None:
        """Nobody is pushed a message that they have sent before they know that it was taken: a client that reads one
        reply to its command would take the message for it.
        """
        lines = b"".join([message.line for message in messages])
        sent = self._publisher.unanswered
        if self._held_back or (sent and any(message.message_id in sent for message in messages)):
            self._held_back.append(lines)
        else:
            self._connection.say(lines)

    def _push_held_back(self) -> None:
        self._publisher.unanswered.clear()
        if self._held_back:
            self._say(self._held_back)
            self._held_back.clear()

    def _refusal(self, error: SealaneError) -> bytes:
        self._door.gate.refused(error)
        return replies.error(str(error))

    # --- messages -----------------------------------------------------------------------------------------------------

    async def _acknowledge(self, message_ids: Sequence[str]) -> None:
        acks = Acknowledging(message_ids, list(self.consumers))
        await acks.carry_out(self._session, self._door.confirmed)
        self._say(
            replies.confirmed(message_id) if (error := acks.outcomes[message_id]) is None else self._refusal(error)
            for message_id in message_ids
        )

    async def _consume(self, queue: str) -> None:
        consumer = await self.consumers.push(queue, self._push)
        self._say([replies.consuming(queue)])  # Before the first message, and again to whoever consumes it already.
        if consumer is not None:
            consumer.begin(self._settings.window_messages)

    async def _fetch(self, queue: str) -> None:
        self._say([await self.consumers.fetch(queue) or replies.no_message(queue)])

    # --- leaving ------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """The connection is gone: what was not begun is not done."""
        for waiting in self._waiting:
            self._connection.intake.end(waiting.cost)
        self._waiting.clear()
        self.consumers.end()


def _go_together(first: Command | SealaneError, following: Command | SealaneError) -> bool:
    match first, following:
        case Publish(), Publish():
            return first[:2] == following[:2]
        case Ack(), Ack():
            return True
        case SealaneError(), SealaneError():
            return True
    return False
