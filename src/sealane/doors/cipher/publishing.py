"""Publishing: messages that come together for one exchange and key are one batch, and share a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sealane.doors.cipher.lives import Lives
from sealane.errors import InvalidMessage, SealaneError
from sealane.message import Row
from sealane.node.outgoing import Outgoing
from sealane.node.session import Session
from sealane.wire.cipher.commands import Publish, PublishBatch
from sealane.wire.cipher.given import Given, given, given_batch


class Publisher:
    """Of one connection."""

    def __init__(self, session: Session, full_name: Callable[[str], str], lives: Lives) -> None:
        self._session = session
        self._full_name = full_name
        self._lives = lives
        self._outgoing = Outgoing(session.limits, session.surroundings)
        self.unanswered: set[str] = set()
        """Ids of messages whose sender has not been told what became of them."""

    async def publish(self, commands: Sequence[Publish]) -> list[str | SealaneError]:
        """Commands for one exchange and key. Returns for each the id that is durable, or why it is not."""
        outcomes: list[str | SealaneError] = []
        good: list[tuple[int, Given]] = []
        for index, command in enumerate(commands):
            try:
                message = given(command.text)
            except InvalidMessage as error:
                outcomes.append(error)
            else:
                outcomes.append(message.message_id)
                good.append((index, message))
        if not good:
            return outcomes
        exchange, routing_key, _ = commands[0]
        try:
            await self._store(exchange, routing_key, [message for _, message in good])
        except SealaneError as error:
            if len(good) == 1:
                outcomes[good[0][0]] = error
            else:
                await self._publish_each(exchange, routing_key, good, outcomes)
        return outcomes

    async def _publish_each(
        self,
        exchange: str,
        routing_key: str,
        messages: Sequence[tuple[int, Given]],
        outcomes: list[str | SealaneError],
    ) -> None:
        """They were refused together: one of them may be to blame, and the others have nothing to do with it."""
        for index, message in messages:
            try:
                await self._store(exchange, routing_key, [message])
            except SealaneError as error:
                outcomes[index] = error

    async def publish_batch(self, command: PublishBatch) -> list[str]:
        """All of them or none. Returns their ids in their order; one that was given twice is stored once."""
        messages = given_batch(command.text)
        await self._store(command.exchange, command.routing_key, messages)
        return [message.message_id for message in messages]

    async def _store(self, exchange: str, routing_key: str, messages: Sequence[Given]) -> None:
        """Return when they are durable. What is stored is the JSON as it came."""
        batch = self._outgoing.build([Row(message.text, id=message.identity) for message in messages])
        message_ids = [message.message_id for message in messages]
        self.unanswered.update(message_ids)
        await self._session.publish_to_exchange(self._full_name(exchange), routing_key, batch)
        self._lives.published(message_ids, exchange=exchange, key=routing_key)
