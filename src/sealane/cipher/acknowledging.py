"""Telling the broker that messages are stored, until it has confirmed that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sealane.cipher.connection import Connection
from sealane.cipher.errors import ConnectionLost
from sealane.cipher.events import Acknowledging, Confirmed, Tell, Unconfirmed
from sealane.cipher.lines import acknowledge, confirmed_of, problem_of
from sealane.cipher.trying import Patience


async def acknowledge_all(connection: Connection, message_ids: Sequence[str], patience: Patience, tell: Tell) -> None:
    """Return when each is `Confirmed`, or refused, which happens if storing it took too long: then it comes again.

    Raises `ConnectionLost` after so many tries without an answer.
    """
    waiting = dict.fromkeys(message_ids)
    for attempt in range(1, patience.tries + 1):
        for message_id in waiting:
            tell(Acknowledging(message_id, attempt))
        try:
            async with asyncio.timeout(patience.try_seconds) as deadline:
                await connection.send(*map(acknowledge, waiting))
                while waiting:
                    reply = await connection.reply()
                    deadline.reschedule(asyncio.get_running_loop().time() + patience.try_seconds)
                    found = confirmed_of(reply)
                    if found in waiting:
                        del waiting[found]
                        tell(Confirmed(found))
                    elif (problem := problem_of(reply)) is not None:
                        # Answers come in the order of the commands, so it is about the first that is left.
                        refused = next(iter(waiting))
                        del waiting[refused]
                        tell(Unconfirmed(refused, problem))
            return
        except TimeoutError:
            continue
    problem = f"has not confirmed {len(waiting):,} acks after {patience.tries} tries"
    raise ConnectionLost(f"{connection.address} {problem}")
