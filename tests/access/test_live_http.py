"""WebSockets and event streams have the same verdicts as every other door, on what they can express."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.node.gate import Gate
from tests.access.commands import COMMANDS, DEADLINE_SECONDS
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import node_of_everyone
from tests.integration.http.socket_client import PACKED, Refused, Socket, open_socket

FORBIDDEN = 403


@asynccontextmanager
async def http_door_of_everyone(guests: Guests) -> AsyncIterator[HttpDoor]:
    async with asyncio.timeout(DEADLINE_SECONDS), node_of_everyone(guests) as native:
        door = HttpDoor(HttpDoorSettings(port=0), Watched(lambda: True, list, lambda: (b"", "text/plain")))
        await door.start()
        try:
            door.let_in(Gate(native.node, guests.authenticate))
            yield door
        finally:
            await door.close()


async def is_allowed(socket: Socket, type: str, **said: object) -> bool:
    try:
        await socket.call(type, **said)
    except Refused as refused:
        if refused.problem["status"] == FORBIDDEN:
            return False
        raise
    return True


@pytest.mark.parametrize("packed", [False, True], ids=["json", "msgpack"])
@pytest.mark.parametrize("who", PEOPLE)
async def test_a_websocket_has_the_verdicts_of_the_table(who: str, packed: bool) -> None:
    person, guests = PEOPLE[who], Guests()
    payload: str | bytes = b"x" if packed else "x"
    async with http_door_of_everyone(guests) as door:
        guests.expected = person.principal(who)
        async with open_socket(door, subprotocols=[PACKED] if packed else None) as socket:
            for domain in (OWN, FOREIGN):
                topic = f"{domain}/t"
                published = await is_allowed(socket, "publish", topic=topic, messages=[{"payload": payload}])
                assert published == COMMANDS["publish"].rule(person, domain)
                consumed = await is_allowed(socket, "subscribe", topic=topic, subscription="watching")
                assert consumed == COMMANDS["attach"].rule(person, domain)


@pytest.mark.parametrize("who", PEOPLE)
async def test_an_event_stream_has_the_verdicts_of_the_table(who: str) -> None:
    person, guests = PEOPLE[who], Guests()
    async with http_door_of_everyone(guests) as door, httpx.AsyncClient(trust_env=False) as client:
        guests.expected = person.principal(who)
        for domain in (OWN, FOREIGN):
            url = f"http://{door.address}/api/v1/domains/{domain}/topics/t/events?start=earliest"
            async with client.stream("GET", url) as answer:
                assert answer.status_code in (200, FORBIDDEN)
                assert (answer.status_code == 200) == COMMANDS["attach"].rule(person, domain)


@pytest.mark.parametrize("domain", ["no-such-domain", FOREIGN])
async def test_whoever_has_no_grant_cannot_tell_what_is_there_from_what_is_not(domain: str) -> None:
    guests = Guests()
    async with http_door_of_everyone(guests) as door:
        guests.expected = PEOPLE["none"].principal("none")
        async with open_socket(door) as socket, httpx.AsyncClient(trust_env=False) as client:
            for topic in ("t", "no-such-topic"):
                name = f"{domain}/{topic}"
                assert not await is_allowed(socket, "publish", topic=name, messages=[{"payload": "x"}])
                assert not await is_allowed(socket, "subscribe", topic=name, subscription="s")
                answer = await client.get(f"http://{door.address}/api/v1/domains/{domain}/topics/{topic}/events")
                assert answer.status_code == FORBIDDEN
