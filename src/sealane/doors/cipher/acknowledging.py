"""Acks: found among what the connection holds, settled together, and confirmed when that is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from sealane.doors.cipher.confirmed import Confirmed
from sealane.doors.cipher.holdings import Place
from sealane.doors.cipher.queue_consumer import QueueConsumer
from sealane.errors import InvalidArgument, LeaseLost, SealaneError
from sealane.node.session import Session
from sealane.wire.cipher.given import identity_of

Lease = tuple[QueueConsumer, int, int]


class Found(NamedTuple):
    """A message that the connection holds."""

    message_id: str
    consumer: QueueConsumer
    place: Place


class Acknowledging:
    """Some acks that came together. `outcomes` says what became of each: None is well."""

    def __init__(self, message_ids: Sequence[str], consumers: Sequence[QueueConsumer]) -> None:
        self._consumers = consumers
        self.outcomes: dict[str, SealaneError | None] = dict.fromkeys(message_ids)
        self._found: list[Found] = [
            Found(message_id, consumer, place)
            for message_id in self.outcomes
            for consumer in consumers
            for place in consumer.held.places(message_id)
        ]

    async def carry_out(self, session: Session, confirmed: Confirmed) -> None:
        """Return when each is durable, or refused."""
        by_lease: dict[Lease, list[Found]] = {}
        for found in self._found:
            place = found.place
            by_lease.setdefault((found.consumer, place.partition, place.lease), []).append(found)
        # Side by side, since they share a commit then.
        await asyncio.gather(*(self._settle(under, confirmed) for under in by_lease.values()))
        held = {found.message_id for found in self._found}
        for message_id in self.outcomes:
            if message_id not in held and not await self._is_done(message_id, session, confirmed):
                self.outcomes[message_id] = _not_held(message_id)

    async def _is_done(self, message_id: str, session: Session, confirmed: Confirmed) -> bool:
        """Whether it was acknowledged before: whoever has not heard of that asks again."""
        topic = confirmed.topic_of(message_id)
        if topic is not None and session.may("consume", topic):
            return True
        identity = identity_of(message_id)
        for consumer in self._consumers:
            if await consumer.attachment.has_settled(identity):
                return True
        return False

    async def _settle(self, under: Sequence[Found], confirmed: Confirmed) -> None:
        """Messages of one lease. If it holds only some of them any more, each is looked at by itself."""
        consumer = under[0].consumer
        message_ids = [found.message_id for found in under]
        places = [found.place for found in under]
        try:
            await consumer.settle(places)
        except LeaseLost:
            if len(under) > 1:
                for found in under:
                    await self._settle([found], confirmed)
                return
            consumer.forget(places)
            self.outcomes[message_ids[0]] = _not_held(message_ids[0])
        except SealaneError as error:
            for message_id in message_ids:
                self.outcomes[message_id] = error  # Still held: it may be acknowledged again.
        else:
            consumer.done(message_ids, places)
            for message_id in message_ids:
                confirmed.remember(message_id, consumer.attachment.topic.full_name)


def _not_held(message_id: str) -> InvalidArgument:
    detail = f"{message_id} is not held by this connection (any more)"
    return InvalidArgument("ack", f"{detail}; if it was not acknowledged it comes again")
