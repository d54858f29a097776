"""Another certificate, and other authorities, while a door is open."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from sealane.doors.tls import NodeTls
from tests.unit.doors.tls.echo_door import echoed, hang_up, opened, refusal
from tests.unit.doors.tls.papers import Papers


async def test_a_new_certificate_is_shown_from_the_next_handshake_on_and_nobody_is_cut_off(
    tls: NodeTls, papers: Papers
) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client())
        first = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        papers.issue("server", "server")
        tls.reload(papers.authority.pem)
        _, late = await door.connect(papers.client())
        second = late.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await hang_up(late)
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        await hang_up(writer)

    assert first != second


async def test_an_authority_that_is_not_trusted_any_more_lets_nobody_in(tmp_path: Path, papers: Papers) -> None:
    others = Papers(tmp_path / "others", "others")
    server = papers.issue("server", "server")
    tls = NodeTls(*server, papers.authority.pem + others.authority.pem)
    context = papers.client(*others.issue("boris", "client"))
    async with opened(tls) as door:
        assert await echoed(door, context, b"x") == b"x"
        tls.reload(papers.authority.pem)
        assert "unknown ca" in (await refusal(door, context)).lower()


async def test_a_certificate_that_cannot_be_read_leaves_the_one_before_it(tls: NodeTls, papers: Papers) -> None:
    certificate, _ = papers.issue("server", "server")
    certificate.write_text("this is none")
    with pytest.raises(ssl.SSLError):
        tls.reload(papers.authority.pem)
    async with opened(tls) as door:
        assert await echoed(door, papers.client(), b"x") == b"x"
