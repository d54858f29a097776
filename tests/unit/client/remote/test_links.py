"""Connecting: which node is found, what is said when none is, and how a connection that has died is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec
import pytest

import sealane
from sealane.client.remote.credentials import NoCredentials
from sealane.client.remote.pool import CONNECTIONS_MAX
from sealane.client.remote.reconnecting import BACK_OFF_SECONDS_MAX, BACK_OFF_SECONDS_MIN, ReconnectingLink
from sealane.wire import messages as wire
from sealane.wire.errors import ProtocolError
from sealane.wire.frames import new_scratch
from tests.integration.client.node_process import free_port
from tests.unit.client.remote.scripted_node import ScriptedNode, scripted_node

Entering = Callable[..., Coroutine[Any, Any, sealane.Lane]]


@pytest.fixture
async def node():
    async with scripted_node() as running:
        yield running


@pytest.fixture
async def entering(node: ScriptedNode):
    """`await entering(url, …)` is a lane that is closed at the end of the test."""
    async with AsyncExitStack() as stack:

        async def enter(url: str | list[str], **options: Any) -> sealane.Lane:
            return await stack.enter_async_context(sealane.connect(url, **options))

        yield enter


async def test_where_nobody_listens_the_error_names_addresses_and_causes(entering: Entering) -> None:
    ports = free_port(), free_port()
    with pytest.raises(sealane.Unavailable) as refused:
        await entering([f"sealane://127.0.0.1:{port}" for port in ports], connect_timeout=0.3)

    for port in ports:
        assert f"127.0.0.1:{port}: connection refused" in str(refused.value)
    assert "within 0.3 s" in str(refused.value)


async def test_a_name_that_is_not_known_is_named(entering: Entering) -> None:
    with pytest.raises(sealane.Unavailable, match=r"nobody\.invalid:7070: the name cannot be resolved"):
        await entering("sealane://nobody.invalid", connect_timeout=1)


async def test_who_accepts_and_says_nothing_is_no_node(node: ScriptedNode, entering: Entering) -> None:
    with pytest.raises(sealane.Unavailable, match="no node answered at"):
        await entering(node.url, connect_timeout=0.3)
    await (await node.visitor()).gone()


async def test_who_talks_nonsense_is_no_node(node: ScriptedNode, entering: Entering) -> None:
    async def talk() -> None:
        while True:
            (await node.visitor()).send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    talking = asyncio.create_task(talk())
    with pytest.raises(sealane.Unavailable, match="native protocol"):
        await entering(node.url, connect_timeout=0.5)
    talking.cancel()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("unauthenticated", sealane.Unauthenticated),
        ("forbidden", sealane.Forbidden),
        ("no-common-version", ProtocolError),
    ],
)
async def test_a_node_that_refuses_this_client_is_believed_at_once(
    node: ScriptedNode, code: str, error: type[sealane.SealaneError], entering: Entering
) -> None:
    connecting = asyncio.create_task(entering(node.url, connect_timeout=600))
    visitor = await node.visitor()
    await visitor.hear(wire.Hello)
    visitor.say(wire.Goodbye(code, "not you"))
    with pytest.raises(error, match="not you"):
        await connecting


async def test_a_node_that_is_full_is_asked_again(node: ScriptedNode, entering: Entering) -> None:
    connecting = asyncio.create_task(entering(node.url))
    (await node.visitor()).say(wire.Goodbye("too-many-connections", "come later"))
    await node.welcomed()
    lane = await connecting
    await lane.close()


async def test_the_node_learns_who_comes(node: ScriptedNode, entering: Entering) -> None:
    connecting = asyncio.create_task(entering(node.url, name="billing", heartbeat_seconds=3))
    hello = await (await node.visitor()).welcome()
    await connecting

    assert hello.versions == [wire.PROTOCOL_VERSION]
    assert hello.software == f"sealane-python/{sealane.__version__} (billing)"
    assert hello.heartbeat_seconds == 3


async def test_one_dead_address_of_several_does_not_matter(node: ScriptedNode, entering: Entering) -> None:
    urls = [f"sealane://127.0.0.1:{free_port()}", node.url, f"sealane://127.0.0.1:{free_port()}"]
    for _ in range(5):
        connecting = asyncio.create_task(entering(urls))
        await node.welcomed()
        await connecting


async def test_an_address_that_swallows_everything_does_not_hold_up_the_others(
    node: ScriptedNode, entering: Entering
) -> None:
    async with scripted_node() as silent:
        connecting = asyncio.create_task(entering([silent.url, node.url], connect_timeout=60))
        await node.welcomed()
        await connecting


async def test_a_name_with_several_addresses_leads_to_whichever_answers(entering: Entering) -> None:
    async with scripted_node(["127.0.0.1"]) as node:
        connecting = asyncio.create_task(entering(f"sealane://localhost:{node.port}"))
        await node.welcomed()
        await connecting


async def test_pings_are_answered(node: ScriptedNode, entering: Entering) -> None:
    connecting = asyncio.create_task(entering(node.url))
    visitor = await node.welcomed()
    await connecting
    visitor.say(wire.Ping())
    await visitor.hear(wire.Pong)


async def test_a_node_that_falls_silent_is_taken_for_gone_and_another_connection_made(
    node: ScriptedNode, entering: Entering
) -> None:
    connecting = asyncio.create_task(entering(node.url))
    silent = await node.welcomed(heartbeat_seconds=0.1)
    lane = await connecting
    asking = asyncio.create_task(lane.topics())
    await silent.hear(wire.Ping)

    visitor = await node.welcomed()
    visitor.say(wire.Answer((await visitor.hear(wire.ListTopics)).call, msgspec.Raw(b"\x90")))
    assert await asking == []
    await silent.gone()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 0}, "timeout"),
        ({"connect_timeout": -1}, "connect_timeout"),
        ({"heartbeat_seconds": float("nan")}, "heartbeat_seconds"),
        ({"connections": 0}, "connections"),
        ({"connections": CONNECTIONS_MAX + 1}, "connections"),
    ],
)
async def test_options_that_cannot_be_are_refused(options: dict[str, float], told: str, entering: Entering) -> None:
    with pytest.raises(sealane.InvalidArgument, match=f"^{told}: "):
        await entering("sealane://127.0.0.1:1", **options)


async def test_as_many_connections_as_allowed_are_no_error(node: ScriptedNode, entering: Entering) -> None:
    connecting = asyncio.create_task(entering(node.url, connections=CONNECTIONS_MAX))
    await node.welcomed()
    await connecting


async def test_a_cancelled_connect_leaves_no_socket_behind(node: ScriptedNode, entering: Entering) -> None:
    connecting = asyncio.create_task(entering(node.url))
    visitor = await node.visitor()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await visitor.gone()


async def test_pauses_between_attempts_grow_to_a_limit_and_are_never_the_same_for_all() -> None:
    highest, lowest = b"\xff\xff", b"\0\0"
    for random, share in ((highest, 1.0), (lowest, 0.5)):
        line = ReconnectingLink((), wire.Hello([1], "x"), NoCredentials(), new_scratch(), {2: random}.__getitem__)
        pauses = [line._pause_seconds(failures) for failures in (0, 1, 2, 4, 5, 1_000)]
        wanted = [BACK_OFF_SECONDS_MIN, 0.1, 0.2, 0.8, BACK_OFF_SECONDS_MAX, BACK_OFF_SECONDS_MAX]
        assert pauses == pytest.approx([share * seconds for seconds in wanted], rel=0.001)


async def test_an_address_gets_so_much_time_and_no_more(
    monkeypatch: pytest.MonkeyPatch, node: ScriptedNode, entering: Entering
) -> None:
    monkeypatch.setattr("sealane.client.remote.racing.ATTEMPT_SECONDS_MAX", 0.05)
    connecting = asyncio.create_task(entering(node.url))
    await (await node.visitor()).gone()
    monkeypatch.undo()

    async def welcome_everyone() -> None:
        while True:
            with suppress(AssertionError):
                await node.welcomed()

    welcoming = asyncio.create_task(welcome_everyone())
    await connecting
    welcoming.cancel()
