"""Who may do what is the same by the frames door: {role x what a connection is x domain}."""

from __future__ import annotations

import asyncio

import pytest

from sealane.doors.frames.door import FramesDoor
from sealane.doors.frames.framing import HEAD, HEAD_BYTES, framed
from sealane.doors.frames.settings import FramesDoorSettings
from sealane.node.gate import Gate
from tests.access.commands import DEADLINE_SECONDS, Rule, needs
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import node_of_everyone
from tests.native_node import NativeNode

ROLES: dict[bytes, Rule] = {b"PRODUCER": needs("publish"), b"CONSUMER": needs("consume")}
"""What the first frame may say, which is all that can be asked here."""


async def is_allowed(node: NativeNode, guests: Guests, role: bytes, domain: str) -> bool:
    settings = FramesDoorSettings(port=0, mode="queue", domain=domain, topic="t")
    door = FramesDoor(Gate(node.node, guests.authenticate), settings)
    try:
        await door.start()
        host, _, port = door.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(framed([role, b"x"] if role == b"PRODUCER" else [role]))
        if role == b"PRODUCER":
            writer.write_eof()
            said = (await reader.read())[HEAD_BYTES:]
        else:
            said = await reader.readexactly(HEAD.unpack(await reader.readexactly(HEAD_BYTES))[0])
        writer.close()
        await writer.wait_closed()
    finally:
        await door.close()
    assert b"failed unexpectedly" not in said
    return b" may not " not in said


@pytest.mark.parametrize("who", PEOPLE)
async def test_the_verdict_on_either_role_is_that_of_the_table(who: str) -> None:
    person, guests = PEOPLE[who], Guests()
    async with node_of_everyone(guests) as node, asyncio.timeout(DEADLINE_SECONDS):
        guests.expected = person.principal(who)
        verdicts = {
            (role, domain): await is_allowed(node, guests, role, domain) for role in ROLES for domain in (OWN, FOREIGN)
        }
    expected = {(role, domain): rule(person, domain) for role, rule in ROLES.items() for domain in (OWN, FOREIGN)}
    assert verdicts == expected


async def test_whoever_has_no_grant_cannot_tell_what_is_there_from_what_is_not() -> None:
    guests = Guests()
    async with node_of_everyone(guests) as node, asyncio.timeout(DEADLINE_SECONDS):
        guests.expected = PEOPLE["none"].principal("none")
        for role in ROLES:
            assert not await is_allowed(node, guests, role, "no-such-domain")
