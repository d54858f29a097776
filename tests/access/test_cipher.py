"""Who may do what is the same by the cipher door: {role x command x domain}."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sealane.doors.cipher.door import CipherDoor
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.node.gate import Gate
from sealane.wire.cipher.commands import USAGES
from tests.access.commands import Rule, everyone, needs
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import node_of_everyone
from tests.cipher_messages import encrypted, written
from tests.cipher_node import LineClient, line_client

MESSAGE = written(encrypted())
COMMANDS: dict[str, tuple[Rule, str]] = {
    "declare_queue": (needs("consume"), "declare_queue DOMAIN/t"),
    "declare_exchange": (needs("manage"), "declare_exchange DOMAIN/t-other"),
    "bind": (needs("manage"), "bind DOMAIN/t DOMAIN/t-exchange key"),
    "publish": (needs("publish"), f"publish DOMAIN/t-exchange key {MESSAGE}"),
    "publish_batch": (needs("publish"), f"publish_batch DOMAIN/t-exchange key [{MESSAGE}]"),
    "fetch": (needs("consume"), "fetch DOMAIN/t"),
    "consume": (needs("consume"), "consume DOMAIN/t"),
    "ack": (everyone, "ack unknown"),
}
"""An ack is of what was delivered, which was allowed or was not."""
FORBIDDEN = " may not "


@asynccontextmanager
async def cipher_client(guests: Guests, who: str) -> AsyncIterator[LineClient]:
    async with node_of_everyone(guests) as node:
        door = CipherDoor(Gate(node.node, guests.authenticate), CipherDoorSettings(port=0))
        try:
            await door.start()
            guests.expected = PEOPLE[who].principal(who)
            async with line_client(door.address) as client:
                yield client
        finally:
            await door.close()


async def is_allowed(client: LineClient, line: str) -> bool:
    """Whether it ends well, or with an error about something else."""
    reply = await client.ask(line)
    while reply.startswith("Message: ") and not line.startswith("fetch"):
        reply = await client.line()  # What another command has asked for.
    assert "failed unexpectedly" not in reply
    return FORBIDDEN not in reply


@pytest.mark.parametrize("who", PEOPLE)
async def test_the_verdict_on_every_command_is_that_of_the_table(who: str) -> None:
    person = PEOPLE[who]
    async with cipher_client(Guests(), who) as client:
        verdicts = {
            (name, domain): await is_allowed(client, line.replace("DOMAIN", domain))
            for name, (_, line) in COMMANDS.items()
            for domain in (OWN, FOREIGN)
        }
    expected = {
        (name, domain): rule(person, domain) for name, (rule, _) in COMMANDS.items() for domain in (OWN, FOREIGN)
    }
    assert {place for place in verdicts if verdicts[place] != expected[place]} == set()


async def test_whoever_has_no_grant_cannot_tell_what_is_there_from_what_is_not() -> None:
    async with cipher_client(Guests(), "none") as client:
        for name, (rule, line) in COMMANDS.items():
            if rule is not everyone:
                assert not await is_allowed(client, line.replace("DOMAIN", "no-such-domain")), name


def test_every_command_has_a_row() -> None:
    assert set(COMMANDS) == set(USAGES)
