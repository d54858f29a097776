"""Who does not get through the TLS of a door; everybody else still does."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from sealane.doors import tls_porch
from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import HANDSHAKE_BYTES_MAX
from sealane.doors.tls_porch import MIDWAY_MAX
from tests.unit.doors.tls.echo_door import WORD, Door, echoed, hang_up, opened, refusal, until
from tests.unit.doors.tls.papers import Papers


async def test_refused_an_older_protocol(tls: NodeTls, papers: Papers) -> None:
    context = papers.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with opened(tls) as door:
        assert "protocol version" in await refusal(door, context)
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_a_certificate_of_another_authority(tmp_path: Path, tls: NodeTls, papers: Papers) -> None:
    stranger = Papers(tmp_path / "theirs", "theirs").issue("anna", "client")
    async with opened(tls) as door:
        assert "unknown ca" in (await refusal(door, papers.client(*stranger))).lower()
        assert door.made == []


async def test_refused_a_servers_certificate_from_a_client(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        assert "certificate" in await refusal(door, papers.client(*papers.issue("another", "server")))
        assert door.made == []


async def test_refused_plain_text_with_a_word_that_tells_what_to_do(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == WORD
        await hang_up(writer)
        await until(lambda: not door.porch.waiting)
        assert door.porch.connections_refused == 1
        assert await echoed(door, papers.client(), b"x") == b"x"


@pytest.mark.parametrize(
    "garbage",
    [b"\x16", b"\x16\x03" + os.urandom(600), b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\xff\xff" + bytes(70_000)],
    ids=["one byte", "noise", "no hello", "a record that is too long"],
)
async def test_refused_what_only_begins_like_tls(tls: NodeTls, papers: Papers, garbage: bytes) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(garbage)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
        await hang_up(writer)
        await until(lambda: not door.porch.waiting)
        assert door.made == []
        assert await echoed(door, papers.client(), b"x") == b"x"


@pytest.mark.parametrize("hello_bytes", [HANDSHAKE_BYTES_MAX + 1, 100_000])
async def test_refused_a_hello_that_is_announced_longer_than_any_client_needs(
    tls: NodeTls, papers: Papers, hello_bytes: int
) -> None:
    """OpenSSL would take memory for all of it, up to 128 KiB, and wait."""
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(struct.pack("!BHH", 22, 0x0301, 500) + b"\x01" + hello_bytes.to_bytes(3) + b"\x03\x03")
        assert await reader.read() == b""
        await hang_up(writer)
        assert door.porch.connections_refused == 1
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_a_handshake_that_is_longer_than_any_client_needs(tls: NodeTls, papers: Papers) -> None:
    """Such as one with a chain of certificates that goes on and on."""
    certificate, key = papers.issue("anna", "client")
    chain = certificate.with_name("chain.pem")
    fits, longer = 10, 2 + HANDSHAKE_BYTES_MAX // len(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
    async with opened(tls) as door:
        chain.write_text(fits * certificate.read_text())
        assert await echoed(door, papers.client(chain, key), b"x") == b"x"
        chain.write_text(longer * certificate.read_text())
        await refusal(door, papers.client(chain, key))
        assert door.porch.connections_refused == 1
        assert len(door.made) == 1


async def test_of_those_who_show_a_part_of_their_certificate_only_the_last_are_kept(
    tls: NodeTls, papers: Papers
) -> None:
    """OpenSSL takes memory for all that they announce."""
    context = papers.client(*papers.issue("anna", "client"))
    async with opened(tls, waiting_max=2 * MIDWAY_MAX) as door:
        halves = []
        for _ in range(MIDWAY_MAX + 1):
            reader, writer, last = await all_but_the_last_word(door, context)
            writer.write(last[: len(last) // 2])
            halves.append((reader, writer))
        with suppress(ConnectionError):
            assert await halves[0][0].read() == b""
        assert door.porch.connections_refused == 1
        assert door.porch.waiting == MIDWAY_MAX
        assert await echoed(door, context, b"x") == b"x"
        for _, writer in halves:
            writer.transport.abort()


async def all_but_the_last_word(
    door: Door, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A handshake, and what is left to say in it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    reader, writer = await door.connect(None)
    await shake_hands(client, incoming, outgoing, reader, writer)
    return reader, writer, outgoing.read()


async def shake_hands(
    client: ssl.SSLObject,
    incoming: ssl.MemoryBIO,
    outgoing: ssl.MemoryBIO,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """The handshake byte by byte, but for the client's last word, which stays in `outgoing`."""
    while True:
        try:
            client.do_handshake()
            return
        except ssl.SSLWantReadError:
            for byte in outgoing.read():
                writer.write(bytes([byte]))
                await writer.drain()
            incoming.write(await reader.read(65_536))


@pytest.mark.parametrize(
    "beginning",
    [b"", b"\x16\x03\x01\x02", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ids=["nothing", "a few bytes", "half a hello"],
)
async def test_refused_a_handshake_that_takes_too_long(
    tls: NodeTls, papers: Papers, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(tls_porch, "HANDSHAKE_SECONDS_MAX", 0.2)
    async with opened(tls) as door:
        inside, inside_writer = await door.connect(papers.client())
        reader, writer = await door.connect(None)
        writer.write(beginning)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        await hang_up(writer)
        assert door.porch.connections_refused == 1

        inside_writer.write(b"in time")
        assert await inside.readexactly(7) == b"in time", "the deadline is for handshakes alone"
        await hang_up(inside_writer)


async def test_refused_one_handshake_too_many_and_let_in_once_there_is_room(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls, waiting_max=2) as door:
        waiting = [socket.create_connection(door.address) for _ in range(2)]
        await until(lambda: door.porch.waiting == 2)
        assert "reset" in (await refusal(door, papers.client())).lower()
        for each in waiting:
            each.close()
        await until(lambda: not door.porch.waiting)
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_what_was_changed_on_its_way(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = papers.client().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        reader, writer = await door.connect(None)
        await shake_hands(client, incoming, outgoing, reader, writer)
        writer.write(outgoing.read())
        client.write(b"pay 10 to anna")
        record = bytearray(outgoing.read())
        record[-1] ^= 1
        writer.write(record)
        with suppress(ConnectionError):
            while await reader.read(65_536):
                """An alert, and the end."""
        await hang_up(writer)
        assert await echoed(door, papers.client(), b"x") == b"x"
