"""TLS of a door, with a real client at the other end: what goes through."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable

import pytest
import uvloop

from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import Inside
from tests.unit.doors.tls.echo_door import BufferedEcho, Echo, MiB, echoed, hang_up, opened
from tests.unit.doors.tls.papers import Papers


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("inside", [Echo, BufferedEcho])
@pytest.mark.parametrize("size", [1, 16_384, 16_385, 5 * MiB + 7])
def test_what_is_sent_comes_back_whole(
    tls: NodeTls,
    papers: Papers,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    inside: Callable[[list[Inside]], Inside],
    size: int,
) -> None:
    data = os.urandom(size)

    async def both_ways() -> bytes:
        async with opened(tls, inside) as door:
            return await echoed(door, papers.client(), data)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(both_ways()) == data


async def test_the_protocol_inside_is_told_the_clients_certificate(tls: NodeTls, papers: Papers) -> None:
    shown = papers.issue("anna", "client")
    async with opened(tls) as door:
        await echoed(door, papers.client(*shown), b"x")
        await echoed(door, papers.client(), b"x")

    assert door.made[0].certificate == ssl.PEM_cert_to_DER_cert(shown[0].read_text())  # type: ignore[union-attr]
    assert door.made[1].certificate is None  # type: ignore[union-attr]


async def test_a_close_is_said_so_that_nobody_can_cut_a_conversation_short(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client())
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        door.made[0].transport.close()  # type: ignore[union-attr]

        assert await reader.read() == b"", "a connection that was cut would raise"
        await hang_up(writer)


async def test_no_ticket_is_handed_out_that_would_let_a_client_skip_the_look_at_its_certificate(
    tls: NodeTls, papers: Papers
) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client(*papers.issue("anna", "client")))
        writer.write(b"x")
        await reader.readexactly(1)
        session = writer.get_extra_info("ssl_object").session
        await hang_up(writer)

    assert session is None or not session.has_ticket
