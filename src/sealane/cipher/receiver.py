"""Receiving: messages are decrypted, stored and then acknowledged, for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from sealane.cipher.acknowledging import acknowledge_all
from sealane.cipher.connection import Connection
from sealane.cipher.errors import CannotDecrypt, ConnectionLost, Refused
from sealane.cipher.events import (
    Arrived,
    Confirmed,
    Connected,
    Disconnected,
    Event,
    Repeated,
    Stored,
    Tell,
    Undecryptable,
    tell_nobody,
)
from sealane.cipher.intake import Intake, TakenIn
from sealane.cipher.lines import Command, consume
from sealane.cipher.received.recent_ids import RecentIds
from sealane.cipher.trying import PATIENCE, Dial, Patience, Pauses

T = TypeVar("T")

WhenUndecryptable = Literal["skip", "stop"]
WHEN_UNDECRYPTABLE: tuple[WhenUndecryptable, ...] = get_args(WhenUndecryptable)

STRIDE_MESSAGES = 100
"""Stored together by one write, then acknowledged together."""
UNDECRYPTABLE_TOLD_MAX = 10_000
"""Messages that are told once, however often they come again."""


class _Ended(Exception):
    """It is time to end."""


@dataclass(frozen=True)
class Order:
    """What to receive, and when to end."""

    queue: str
    declaring: Sequence[Command] = ()
    """Said at the beginning of each connection, before the queue is consumed."""
    count: int | None = None
    """End after so many stored messages."""
    wait_seconds: float | None = None
    """End when nothing has come for so long."""
    when_undecryptable: WhenUndecryptable = "skip"
    """`skip` leaves such a message unacknowledged and goes on: whoever may publish could otherwise stop a receiver.
    `stop` ends at the first one."""


class Receiver:
    """Connects again by itself, whatever happens to the broker. A message is acknowledged when it is durable in the
    file; one that comes again is acknowledged again, and not stored.
    """

    def __init__(
        self,
        dial: Dial,
        order: Order,
        intake: Intake,
        *,
        patience: Patience = PATIENCE,
        tell: Tell = tell_nobody,
    ) -> None:
        self._dial = dial
        self._order = order
        self._intake = intake
        self._patience = patience
        self._tell = tell
        self._stopping = asyncio.Event()
        self._ends_at: float | None = None
        """By the loop's clock."""
        self._told = RecentIds(UNDECRYPTABLE_TOLD_MAX)
        self.stored = 0
        self.repeated = 0
        self.undecryptable = 0
        """Different messages, not deliveries."""
        self.unconfirmed: set[str] = set()
        """Stored, and the broker has not confirmed the ack: they may come again."""

    async def run(self) -> None:
        """Receive until the order is carried out, or `stop` is called.

        Raises `ConnectionLost` if the broker cannot be reached at the beginning, `Refused` if it does not let the queue
        be consumed, `CannotDecrypt` where the order says so, and what keeps the file from being written.
        """
        self._postpone_end()
        connection = await self._open()
        try:
            while not self._is_done:
                try:
                    await self._take_turns(connection)
                except ConnectionLost as error:
                    await connection.close()
                    self._tell(Disconnected(str(error)))
                    connection = await self._unless_ended(self._open_again())
        except _Ended:
            pass
        finally:
            await connection.close()

    def stop(self) -> None:
        """End when the messages in hand are stored and acknowledged."""
        self._stopping.set()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def _open(self) -> Connection:
        connection = await self._dial()
        try:
            for command in (*self._order.declaring, consume(self._order.queue)):
                await connection.ask(command, self._patience.try_seconds)
        except BaseException:
            await connection.close()
            raise
        self._tell(Connected(connection.address))
        return connection

    async def _open_again(self) -> Connection:
        """For as long as it takes: also what was refused may be allowed again, such as by a node that was stopping."""
        pauses = Pauses()
        told = ""
        while True:
            await asyncio.sleep(pauses.next())
            try:
                return await self._open()
            except (ConnectionLost, Refused) as error:
                if str(error) != told:
                    told = str(error)
                    self._tell(Disconnected(told))

    async def _take_turns(self, connection: Connection) -> None:
        if self.unconfirmed:
            # The connection before may have ended between an ack and its confirmation: what is settled comes no more,
            # so it is asked for here. What is not comes again, whatever is answered now.
            await acknowledge_all(connection, sorted(self.unconfirmed), self._patience, self._note_ack)
        while not self._is_done:
            pushed = await self._unless_ended(connection.pushed(STRIDE_MESSAGES))
            for each in pushed:
                self._tell(Arrived(each.message_id))
            taken = await asyncio.to_thread(self._intake.take, pushed, self._room)
            self._count(taken)
            await acknowledge_all(connection, taken.to_acknowledge, self._patience, self._note_ack)
            if taken.undecryptable and self._order.when_undecryptable == "stop":
                raise taken.undecryptable[0]

    def _count(self, taken: TakenIn) -> None:
        for entry in taken.stored:
            self._tell(Stored(entry))
        for message_id in taken.repeated:
            self._tell(Repeated(message_id))
        self.stored += len(taken.stored)
        self.repeated += len(taken.repeated)
        self.unconfirmed.update(entry.message_id for entry in taken.stored)
        self._note_undecryptable(taken.undecryptable)
        if taken.stored or (taken.repeated and self._room != 0):
            self._postpone_end()

    def _note_ack(self, event: Event) -> None:
        if isinstance(event, Confirmed):
            self.unconfirmed.discard(event.message_id)
        self._tell(event)

    def _note_undecryptable(self, found: Sequence[CannotDecrypt]) -> None:
        for error in found:
            if error.message_id not in self._told:
                self._told.add([error.message_id])
                self.undecryptable += 1
                self._tell(Undecryptable(error.message_id, error.reason))

    # --- the end ------------------------------------------------------------------------------------------------------

    @property
    def _room(self) -> int | None:
        return None if self._order.count is None else self._order.count - self.stored

    @property
    def _is_done(self) -> bool:
        return self._stopping.is_set() or (self._room == 0 and not self.unconfirmed)

    def _postpone_end(self) -> None:
        """Messages have come. When all that are wanted are stored, only their acks are waited for: as long as they may
        be tried on this connection, and as long again for another one.
        """
        seconds = 2 * self._patience.seconds if self._room == 0 else self._order.wait_seconds
        self._ends_at = None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def _unless_ended(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result; raises `_Ended` if it is time to end before there is one."""
        loop = asyncio.get_running_loop()
        working, stopping = loop.create_task(work), loop.create_task(self._stopping.wait())
        try:
            left = None if self._ends_at is None else max(0.0, self._ends_at - loop.time())
            await asyncio.wait({working, stopping}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise _Ended
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.wait({working, stopping})
