"""Who may do what is the same by every door: {role × command × domain × door}, from one table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import pytest

from sealane.client import Lane
from sealane.client.embedded import in_process
from sealane.node import NodeSettings
from sealane.node.administration import COMMANDS as ADMINISTRATION
from sealane.node.charging import Charging
from sealane.node.session import Session
from sealane.security.settings import AuditSettings, SecuritySettings
from sealane.wire.messages import Request
from tests.access.commands import COMMANDS, PULLING, administration, is_allowed, stage
from tests.access.doors import DOORS, Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.native_node import NativeNode, native_node

NO_COMMANDS = {
    "is_transaction_done": "asked by `transact` when its answer may have been lost",
    "node": "for commands of the administration, which authorise themselves",
    "open_batch": "checks bytes, and knows nothing",
    "signing_secret": "for the door that checks the signature",
    "surroundings": "the clock",
}
"""What else is public on a session, and why nobody has to be authorised for it."""


async def arrange(lane: Lane) -> None:
    for domain in (OWN, FOREIGN):
        await lane.publish(f"{domain}/t", b"a message")
        await lane.create_topic(f"{domain}/t.s.dead")
        await lane.declare_exchange(f"{domain}/t-exchange")
        await lane.bind(f"{domain}/t-exchange", f"{domain}/t", "key")
        for purpose in ("publish", "drop"):
            await stage(lane, domain, purpose)


@asynccontextmanager
async def node_of_everyone(guests: Guests) -> AsyncIterator[NativeNode]:
    settings = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=True)))
    async with native_node(authenticate=guests.authenticate, settings=settings) as node:
        for person in PEOPLE.values():
            for grant in person.grants:
                await node.node.identity.grants.add(grant)
        async with in_process(node.node) as lane:
            await arrange(lane)
        yield node


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("door", DOORS)
async def test_the_verdict_on_every_command_is_that_of_the_table(door: str, who: str) -> None:
    person, guests = PEOPLE[who], Guests()
    rows = {**COMMANDS, **administration()}
    async with (
        node_of_everyone(guests) as node,
        DOORS[door](node, guests, person.principal(who)) as lane,
    ):
        verdicts = {
            (name, domain): await is_allowed(row.asked(lane, domain))
            for name, row in rows.items()
            for domain in (OWN, FOREIGN)
        }
    expected = {(name, domain): row.rule(person, domain) for name, row in rows.items() for domain in (OWN, FOREIGN)}
    assert {place for place in verdicts if verdicts[place] != expected[place]} == set()


@pytest.mark.parametrize("who", PEOPLE)
async def test_the_verdict_on_what_is_pulled_is_that_of_the_table(who: str) -> None:
    person = PEOPLE[who]
    async with node_of_everyone(Guests()) as node:
        session = Session(node.node, person.principal(who))
        for name, row in PULLING.items():
            for domain in (OWN, FOREIGN):
                assert await is_allowed(row.asked(session, domain)) == row.rule(person, domain), (name, domain)


@pytest.mark.parametrize("door", DOORS)
async def test_whoever_has_no_grant_cannot_tell_what_is_there_from_what_is_not(door: str) -> None:
    guests = Guests()
    async with (
        node_of_everyone(guests) as node,
        DOORS[door](node, guests, PEOPLE["none"].principal("none")) as lane,
    ):
        for name, row in COMMANDS.items():
            assert not await is_allowed(row.asked(lane, "no-such-domain")), name
        assert await lane.topics() == []
        assert await lane.logs("*/*") == []
        assert await lane.exchanges() == {}


def test_every_command_of_a_session_has_a_row() -> None:
    commands = {name for part in Session.__mro__ if issubclass(part, Charging) for name in vars(part)}
    public = {name for name in commands if not name.startswith("_")}
    assert public - set(NO_COMMANDS) == {*COMMANDS, *PULLING}


def test_every_request_of_the_native_protocol_has_a_row() -> None:
    said = [kind for row in COMMANDS.values() for kind in row.said]
    assert sorted(kind.__name__ for kind in said) == sorted(kind.__name__ for kind in get_args(Request))


def test_every_command_of_the_administration_has_a_row() -> None:
    assert set(ADMINISTRATION) == set(administration())
