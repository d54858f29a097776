"""Sending: each message is kept until the broker has acknowledged it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from sealane.cipher.connection import Connection
from sealane.cipher.errors import ConnectionLost, NotAcknowledged, Refused
from sealane.cipher.events import Acknowledged, Retrying, Sending, Tell, tell_nobody
from sealane.cipher.lines import Command, acknowledged_of, problem_of, publish
from sealane.cipher.trying import PATIENCE, Dial, Patience, dial_until
from sealane.wire.cipher.message import EncryptedMessage

BATCH_MESSAGES = 500
BATCH_BYTES = 1 << 20
"""One line carries so many, or one message that is larger."""


class Sender:
    """Sends to one exchange under one routing key, in order. A message that is repeated is stored once, by its id."""

    def __init__(
        self,
        dial: Dial,
        exchange: str,
        routing_key: str,
        *,
        declaring: Sequence[Command] = (),
        patience: Patience = PATIENCE,
        tell: Tell = tell_nobody,
    ) -> None:
        """`declaring` is said at the beginning of each connection."""
        self._dial = dial
        self._exchange = exchange
        self._routing_key = routing_key
        self._declaring = declaring
        self._patience = patience
        self._tell = tell
        self._connection: Connection | None = None
        self.stopped = False
        """Whether `stop` was called: nothing more is sent."""
        self._singles = 0
        """So many are sent one by one, since they were refused together: one of them alone may be to blame."""
        self.pending: dict[str, EncryptedMessage] = {}
        """What was given to send, and is not acknowledged."""
        self.acknowledged = 0

    async def send(self, messages: Sequence[EncryptedMessage]) -> None:
        """Return when all of them are acknowledged, or `stop` was called.

        Raises `NotAcknowledged` after three tries in a row without any ack; `pending` has those that are left.
        """
        self.pending.update((message.message_id, message) for message in messages)
        self._singles = 0
        failures = 0
        while self.pending and not self.stopped:
            before = self.acknowledged
            try:
                await self._try(failures + 1)
            except (ConnectionLost, Refused) as error:
                await self.close()
                failures = 1 if self.acknowledged > before else failures + 1
                if failures >= self._patience.tries:
                    raise NotAcknowledged(list(self.pending), failures, str(error)) from error
                if self.stopped:
                    return
                self._tell(Retrying(len(self.pending), failures + 1, str(error)))
                if isinstance(error, Refused):
                    await asyncio.sleep(self._patience.refused_seconds)

    def stop(self) -> None:
        """Let the line that is under way be the last one."""
        self.stopped = True

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _try(self, attempt: int) -> None:
        """Send all that is pending, on one connection."""
        connection = self._connection or await self._connect()
        for batch in _batches(list(self.pending.values()), self._singles):
            if self.stopped:
                return
            command = publish(self._exchange, self._routing_key, batch)
            for message in batch:
                self._tell(Sending(message.message_id, attempt))
            try:
                await self._until_acknowledged(connection, command, {message.message_id for message in batch})
            except Refused:
                self._singles = max(self._singles, len(batch))
                raise

    async def _connect(self) -> Connection:
        seconds = self._patience.try_seconds
        self._connection = await dial_until(self._dial, asyncio.get_running_loop().time() + seconds)
        for command in self._declaring:
            await self._connection.ask(command, seconds)
        return self._connection

    async def _until_acknowledged(self, connection: Connection, command: Command, waiting: set[str]) -> None:
        seconds = self._patience.try_seconds
        try:
            async with asyncio.timeout(seconds) as deadline:
                await connection.send(command)
                while waiting:
                    reply = await connection.reply()
                    problem = problem_of(reply)
                    if problem is not None:
                        raise Refused(command.told, problem)
                    message_id = acknowledged_of(reply)
                    if message_id in waiting:
                        waiting.discard(message_id)
                        self._done(message_id)
                        deadline.reschedule(asyncio.get_running_loop().time() + seconds)
        except TimeoutError:
            problem = f"{connection.address} has not acknowledged within {seconds:g} s"
            raise ConnectionLost(problem) from None

    def _done(self, message_id: str) -> None:
        del self.pending[message_id]
        self.acknowledged += 1
        self._singles = max(0, self._singles - 1)
        self._tell(Acknowledged(message_id))


def _batches(messages: Sequence[EncryptedMessage], singles: int) -> Iterator[list[EncryptedMessage]]:
    """All of them, the first so many one by one."""
    yield from ([message] for message in messages[:singles])
    batch: list[EncryptedMessage] = []
    size = 0
    for message in messages[singles:]:
        length = len(message.ciphertext)
        if batch and (len(batch) >= BATCH_MESSAGES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += length
    if batch:
        yield batch
